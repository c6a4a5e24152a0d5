// Idle connections (-I): opens them, logs in and keeps them, to observe how a server
// copes with many clients.
//
// Threading: one thread and one reactor hold them all.
#pragma once

#include "cli/benchmark/load.hpp"

namespace weir::benchmark {

// Holds plan.clients connections and prints their number four times a second, until plan.stop is set. A
// refused or lost connection is an error.
client::Result<void> hold_idle_connections(const LoadPlan&);

}  // namespace weir::benchmark
