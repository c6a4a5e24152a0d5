// From options to what run_load wants.
#pragma once

#include "cli/benchmark/load.hpp"
#include "cli/benchmark/options.hpp"

namespace weir::benchmark {

// The load ends early when `stop` is set.
LoadPlan plan_for(const Options&, client::Endpoint, const std::atomic<bool>& stop);
// The user's own command, or the standard tests.
client::Result<std::vector<Workload>> workloads_of(const Options&);

}  // namespace weir::benchmark
