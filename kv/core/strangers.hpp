// Clients that have not given the password yet, and when they connected.
//
// Every client is a stranger from connecting until AUTH, and again after RESET. Meanwhile it holds a seat, so
// its time is limited (auth-timeout). If strangers hold half of all seats, the oldest one makes room for the
// next. Client::charge() limits the memory of strangers.
#pragma once

#include <absl/container/btree_map.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "kv/settings/settings.hpp"

namespace weir::kv {

class Client;

// Not thread-safe: the server's loop uses it.
class Strangers {
 public:
  // Closes a client, which then calls leave(); the reason is for the log.
  using Close = std::function<void(Client&, const std::string& why)>;

  Strangers(const Settings& settings, Close close) : settings_(settings), close_(std::move(close)) {}

  // Returns the number under which leave() finds it; never 0.
  std::uint64_t enter(Client& client, std::int64_t now_ms) {
    here_.emplace(++entered_, Stranger{&client, now_ms});
    return entered_;
  }
  void leave(std::uint64_t number) { here_.erase(number); }

  std::size_t size() const { return here_.size(); }
  // The deadline for the oldest stranger to give the password; 0: there is none, or no limit.
  std::int64_t next_deadline_ms() const;
  void close_late(std::int64_t now_ms);
  // Closes the oldest while strangers hold more than half of all seats.
  void make_room(std::int64_t now_ms);

  // The bytes held by all strangers together, and their limit.
  std::size_t bytes = 0;
  std::size_t most_bytes = 64u << 20;

 private:
  struct Stranger {
    Client* client;
    std::int64_t since_ms;
  };

  const Stranger& oldest() const { return here_.begin()->second; }

  const Settings& settings_;
  const Close close_;
  absl::btree_map<std::uint64_t, Stranger> here_;  // by number, and so in order of arrival
  std::uint64_t entered_ = 0;
};

}  // namespace weir::kv
