// One thread's share of a load and its measurements. Only that thread uses it, except for the atomics.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/benchmark/histogram.hpp"
#include "cli/benchmark/open_loop.hpp"
#include "cli/client/error.hpp"

namespace weir::benchmark {

// For a cluster: the results of the requests sent to a node.
struct NodeCount {
  std::string address;
  std::uint64_t answered = 0;
  std::uint64_t redirected = 0;  // MOVED or ASK; these requests were sent again
};

struct LoadShare {
  using Time = std::chrono::steady_clock::time_point;

  explicit LoadShare(std::atomic<bool>& a) : abandoned(a) {}

  std::atomic<bool>& abandoned;  // set when a thread fails: the others need not finish
  std::uint64_t to_send = 0;     // requests that no connection has yet
  std::uint64_t under_way = 0;
  std::size_t connections = 0;
  Time stop = Time::max();
  Time finished{};
  std::uint64_t cpu_ns = 0;
  std::uint64_t cpu_wait_ns = 0;  // ready to run while others had the CPU
  LatencyHistogram latency;
  std::optional<OpenLoop> open_loop;  // times when requests are due; nullopt: when the last ones are answered
  std::uint64_t unsent = 0;           // of an open loop: due, but given up at the end
  std::uint64_t nulls = 0;            // null replies
  bool map_outdated = false;          // for a cluster: a node has replied MOVED
  std::vector<NodeCount> nodes;       // filled in at the end
  std::optional<client::Error> error;
  std::atomic<std::uint64_t> done{
      0};  // written by its thread, read by the watcher: a count that orders nothing

  void fail(client::Error why) {
    if (!error) error = std::move(why);
    abandoned.store(true, std::memory_order_relaxed);
  }
  bool over() const { return error || (to_send == 0 && under_way == 0); }
  void give_up_the_rest(Time now) {
    if (open_loop) unsent += open_loop->abandon(now, latency);
    to_send = 0;
  }
};

}  // namespace weir::benchmark
