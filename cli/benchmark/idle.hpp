// Idle connections (-I): opens them, logs in and keeps them, for a look at what a server makes of many
// clients.
//
// Threading: one thread and one reactor hold them all.
#pragma once

#include "cli/benchmark/load.hpp"

namespace weir::benchmark {

// Holds plan.clients connections and prints, four times a second, how many there are, until plan.stop is set.
// A connection that is refused or lost is an error.
client::Result<void> hold_idle_connections(const LoadPlan&);

}  // namespace weir::benchmark
