// What a collective amounts to: how long it took, and the bandwidth that its hosts saw, which is what its
// users compare; the flows that it is made of are thousands.
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
  std::uint64_t bytes = 0;  // of each host: the vector of a ring, all that it sends of an all-to-all
  std::uint64_t flows = 0, finished = 0;
  double completion_us = 0;  // from its start to its last arrival; 0 where it did not finish
  // NCCL's: bytes over time, times 2 (n - 1) / n for a ring and (n - 1) / n for an all-to-all: what the links
  // carried, which does not depend on the number of hosts.
  double bus_gbps = 0;
};

// In order of the workloads; those that are no collective, or are repeated, are not in it.
std::vector<CollectiveResult> collective_results(const Simulation& simulation);

std::string describe(const CollectiveResult& result);

}  // namespace weir::fabric::sim
