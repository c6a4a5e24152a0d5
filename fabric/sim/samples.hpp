// The series of a run: the contents of queues and buffers at every interval. When a series is full, every
// other sample is dropped and the interval doubles, so that a long run uses no more memory than a short one.
// Of a period without changes only the first and the last sample are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/sim/network_state.hpp"

namespace weir::fabric::sim {

struct QueueSample {
  Ticks time;
  std::uint32_t port;
  std::uint32_t priority;
  std::uint32_t egress_bytes;
  std::uint32_t ingress_shared_bytes;
  std::uint32_t headroom_bytes;
  bool paused;
};

struct SwitchSample {
  Ticks time;
  std::uint32_t node;
  std::uint64_t shared_bytes;
  std::uint64_t headroom_bytes;
};

struct TotalSample {
  Ticks time;
  std::uint64_t delivered_bytes;  // since the start; of programs, with headers
  std::uint32_t flows_alive;
  std::uint32_t queues_paused;
};

struct Series {
  Ticks interval = 0;
  std::vector<TotalSample> totals;
  std::vector<SwitchSample> switches;  // those with a buffer in use
  std::vector<QueueSample> queues;     // those with packets, or stopped
};

class Samples {
 public:
  explicit Samples(NetworkState& net);

  // Takes a sample now, unless it equals the last.
  void keep(std::uint32_t flows_alive);
  void order_next();
  // Also of priorities that no simulated flow has.
  void watch_all_priorities() { used_priorities_ = 0xff; }
  const Series& series() const { return series_; }

 private:
  bool sample_again(std::uint32_t flows_alive, std::uint32_t held);
  void repeat_last(Ticks time);

  NetworkState& net_;
  Series series_;
  std::uint8_t used_priorities_;    // of flows, responses and storms; other queues stay empty
  std::uint64_t sampled_hops_ = 0;  // at the last kept sample
  Ticks unchanged_until_ = 0;       // time of the last sample that was dropped as unchanged; 0: none
};

}  // namespace weir::fabric::sim
