// The counters of every software NIC of this user, as `weir stat` reads them from Weir's libibverbs.
#pragma once

#include <chrono>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "verbs/monitor/statistics.hpp"

namespace weir::command {

using verbs::CountersSeen;

struct WatchedQueuePair {
  std::uint32_t number = 0, peer_number = 0;
  std::string type, state;
  CountersSeen counters{};
  std::string peer_address =
      {};  // where the peer is reached by packets; empty: on this host, or not connected
};

struct WatchedProcess {
  pid_t pid = 0;  // 0: in a pid namespace that is not ours
  std::string command;
  unsigned slot = 0;
  std::uint64_t incarnation = 0;
  CountersSeen sums{};
  std::vector<WatchedQueuePair> queue_pairs;
};

// All of them at one time.
struct Sample {
  std::chrono::steady_clock::time_point at;
  std::vector<WatchedProcess> processes;
  int silent = 0;  // processes that did not answer
};

class NicWatch {
 public:
  // The error is fit to print.
  static std::expected<NicWatch, std::string> open(const std::string& library_directory);
  Sample look();

 private:
  struct Calls;
  struct Close {
    const Calls* calls;
    void operator()(verbs::Monitor* monitor) const;
  };
  NicWatch(std::shared_ptr<const Calls> calls, verbs::Monitor* monitor);
  std::shared_ptr<const Calls> calls_;
  std::unique_ptr<verbs::Monitor, Close> monitor_;
};

}  // namespace weir::command
