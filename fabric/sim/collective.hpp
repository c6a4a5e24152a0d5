// The result of a collective: its duration, and the bandwidth that its hosts saw, which users compare. The
// collective consists of thousands of flows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/sim/simulation.hpp"

namespace weir::fabric::sim {

struct CollectiveResult {
  std::string name;
  std::string kind;  // "ring-allreduce"
  std::uint32_t hosts = 0;
  std::uint64_t bytes = 0;  // per host: the vector of a ring, or all that it sends in an all-to-all
  std::uint64_t flows = 0, finished = 0;
  double completion_us = 0;  // from its start to its last arrival; 0: it did not finish
  // As in NCCL: bytes over time, times 2 (n - 1) / n for a ring and (n - 1) / n for an all-to-all. This is
  // what the links carried, and does not depend on the number of hosts.
  double bus_gbps = 0;
};

// In order of the workloads; without those that are not collectives or are repeated.
std::vector<CollectiveResult> collective_results(const Simulation& simulation);

std::string describe(const CollectiveResult& result);

}  // namespace weir::fabric::sim
