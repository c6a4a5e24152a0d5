// Converts options into the input of run_load.
#pragma once

#include "cli/benchmark/load.hpp"
#include "cli/benchmark/options.hpp"

namespace weir::benchmark {

// The load ends early if `stop` is set.
LoadPlan plan_for(const Options&, client::Endpoint, const std::atomic<bool>& stop);
// Asks the server for the other nodes of its cluster.
client::Result<LoadPlan> spread_over_cluster(LoadPlan);
// The user's own command, or the standard tests.
client::Result<std::vector<Workload>> workloads_of(const Options&);

}  // namespace weir::benchmark
