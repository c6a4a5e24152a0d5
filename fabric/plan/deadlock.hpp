// Cyclic buffer dependencies: cycles of ingress buffers in which each may, under
// PFC, wait for the next.
//
// The graph has a vertex for each direction of each link between switches (for the buffer that it fills at
// its far end). An edge leads from p to q if some packet arrives over p and leaves over q. Without a cycle
// there is no deadlock, whatever the traffic; with a cycle the wrong traffic causes one. All lossless
// priorities have the same graph, because they are routed alike.
//
// Cost: cycles are found as strongly connected components. For a failed link only destinations
// that lost their last next hop are rerouted, and a full graph is built only if these could close
// a cycle. Up-down routing without static routes does not even need that: it follows one order of
// the links, whatever fails.
#pragma once

#include <string>
#include <vector>

#include "fabric/topology/routing.hpp"

namespace weir::fabric {

struct DependencyCycle {
  struct Hop {
    PortId out;      // the link, by its sending port
    NodeId held_by;  // a host: packets to it need the next hop's buffer to leave this one
  };
  std::vector<Hop> hops;
  std::string text;  // "s1 -> s2 -> s3 -> s1"
};

struct FailureCycle {
  LinkId failed;
  DependencyCycle cycle;
};

struct DeadlockReport {
  std::vector<DependencyCycle> cycles;      // one for each strongly connected set of buffers, as routed now
  std::size_t failures_examined = 0;        // single links; none if there already are cycles
  std::vector<FailureCycle> after_failure;  // only the first most_failure_cycles are kept
  std::size_t failures_with_cycle = 0;
  static constexpr std::size_t most_failure_cycles = 10;
};

enum class FailureScope { none, each_link };

DeadlockReport find_deadlocks(const Network& network, FailureScope scope);

}  // namespace weir::fabric
