// Finds deadlocks that have happened: a cycle of queues, none of which has sent anything since the last
// check. PFC stops each queue, on behalf of a switch in which packets from that queue wait in the next one.
// (The planner examines cycles that *could* happen.)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fabric/sim/network_state.hpp"

namespace weir::fabric::sim {

class DeadlockCheck {
 public:
  explicit DeadlockCheck(NetworkState& net) : net_(net) {}

  // Looks now, and orders the next look.
  void look();

 private:
  std::vector<std::uint32_t> stuck_queues();
  std::vector<std::vector<std::uint32_t>> stopped_by(std::span<const std::uint32_t> stuck) const;

  NetworkState& net_;
  std::vector<std::uint64_t> sent_;  // by each queue until the last look
  bool found_ = false;
};

}  // namespace weir::fabric::sim
