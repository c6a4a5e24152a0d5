// What one thread of a load does and has measured. Its thread's alone, but for the two atomics.
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

// Of a cluster: what became of the requests that were sent to a node.
struct NodeCount {
  std::string address;
  std::uint64_t answered = 0;
  std::uint64_t redirected = 0;  // MOVED or ASK; they were sent again
};

struct LoadShare {
  using Time = std::chrono::steady_clock::time_point;

  explicit LoadShare(std::atomic<bool>& a) : abandoned(a) {}

  std::atomic<bool>& abandoned;  // one thread failed: the others need not finish
  std::uint64_t to_send = 0;     // requests not yet given to a connection
  std::uint64_t under_way = 0;
  std::size_t connections = 0;
  Time stop = Time::max();
  Time finished{};
  std::uint64_t cpu_ns = 0;
  LatencyHistogram latency;
  std::optional<OpenLoop> open_loop;  // when requests are due; nothing: as soon as the last are answered
  std::uint64_t unsent = 0;           // of an open loop: due, and given up at the end
  std::uint64_t nulls = 0;            // replies that say there is nothing
  bool map_outdated = false;          // of a cluster: a node has said MOVED
  std::vector<NodeCount> nodes;       // at the end
  std::optional<client::Error> error;
  std::atomic<std::uint64_t> done{
      0};  // written by its thread, read by the watcher: a count, no ordering needed

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
