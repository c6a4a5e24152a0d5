// The part of the report over time, and the network at its worst.
#pragma once

#include <string>

#include "fabric/sim/summary.hpp"

namespace weir::fabric::sim {

// The time of the last change, plus a tenth; or the end of the run if that is earlier. So a deadlock is
// visibly at a standstill, and what led to it is visible, too.
Ticks end_of_interest(const Simulation& simulation);
// 0, unless for more than half of the time until `end` next to nothing arrived: then where that changes.
// Programs take their time before they send much.
Ticks begin_of_interest(const Simulation& simulation, Ticks end);

std::string over_time(const Simulation& simulation);

// A map of where packets waited and which ports were stopped. `network`: the source of the simulated Fabric.
std::string worst_places(const Simulation& simulation, const Network& network);

}  // namespace weir::fabric::sim
