// Cyclic buffer dependencies: circles of ingress buffers each of which can be waiting, under PFC, for the
// next.
//
// The graph has a vertex for each direction of each link between switches (the buffer that it fills, at its
// far end) and an edge from p to q where some packet comes in over p and leaves over q. Without a cycle there
// is no deadlock, whatever the traffic; with one it takes the wrong traffic. All lossless priorities have the
// same graph, for they are routed alike.
//
// Cost: cycles are found as strongly connected components; a failed link is looked at by routing anew only
// those destinations that lost their last way on, and a full graph is made only if these could close a cycle.
// Up-down routing without static routes needs not even that: it follows one order of the links, whatever
// fails.
#pragma once

#include <string>
#include <vector>

#include "fabric/topology/routing.hpp"

namespace weir::fabric {

struct DependencyCycle {
  struct Hop {
    PortId out;      // the link, by the port that sends into it
    NodeId held_by;  // a host; packets to it need the next hop's buffer to leave this one
  };
  std::vector<Hop> hops;
  std::string text;  // "s1 -> s2 -> s3 -> s1"
};

struct FailureCycle {
  LinkId failed;
  DependencyCycle cycle;
};

struct DeadlockReport {
  std::vector<DependencyCycle> cycles;      // one for each knot of buffers, as the network is routed
  std::size_t failures_examined = 0;        // single links; none where there are cycles already
  std::vector<FailureCycle> after_failure;  // at most most_failure_cycles are kept
  std::size_t failures_with_cycle = 0;
  static constexpr std::size_t most_failure_cycles = 10;
};

enum class FailureScope { none, each_link };

DeadlockReport find_deadlocks(const Network& network, FailureScope scope);

}  // namespace weir::fabric
