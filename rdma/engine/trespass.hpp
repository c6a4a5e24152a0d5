// Peers that try to reach memory of ours that they were given no right to, counted by source address.
//
// No peer does that by accident, and one that guesses keys needs many connections, because each try ends one.
// The third try from an address within ten minutes shuts the door: for a minute, each connection that asks
// from there is rejected. An address of this host shuts no door, because it does not say which of the host's
// programs it was, and the others must not pay for it.
//
// Bounded: `max_sources` addresses (/64 networks of IPv6); beyond that the one that tried longest ago is
// forgotten. Durations by the steady clock, passed in. Threading: any; all engines of a program share one.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>

#include "rdma/verbs/cm.hpp"

namespace weir::rdma {

class Trespasses {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::uint32_t tries_that_shut = 3;
  static constexpr std::chrono::minutes remembered{10}, shut_for{1};
  static constexpr std::size_t max_sources = 1024;

  struct Counted {
    std::uint32_t tries = 0;  // from there, lately
    bool shuts = false;       // and this one shut the door
    bool news = false;        // the first for a minute from there, or it shut the door: worth a line in a log
  };
  Counted count(const Endpoint& local, const Endpoint& remote, Time now);
  // Whether a connection from there is to be rejected.
  bool is_shut(const Endpoint& remote, Time now);
  std::uint64_t total() const;

  // What is counted as one: an IPv4 address, or a /64 network of IPv6.
  using Source = std::array<unsigned char, 16>;
  static Source source_of(const Endpoint& remote);

 private:
  struct Tries {
    std::uint32_t count = 0;
    Time last, told, shut_until;
  };
  Tries& tries_of(const Source& source, Time now);

  mutable std::mutex mutex_;
  std::map<Source, Tries> sources_;
  std::uint64_t total_ = 0;
};

}  // namespace weir::rdma
