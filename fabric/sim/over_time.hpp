// The part of the report that has time along x, and the network as it was at its worst.
#pragma once

#include <string>

#include "fabric/sim/summary.hpp"

namespace weir::fabric::sim {

// The first moment after which nothing changed any more, and a tenth of the time until then; the end of the
// run where that is earlier. A deadlock is seen to stand still, and what led to it is still seen.
Ticks end_of_interest(const Simulation& simulation);

std::string over_time(const Simulation& simulation);

// Where packets waited and who was stopped, on a map. `network`: what the simulation's Fabric was made of.
std::string worst_places(const Simulation& simulation, const Network& network);

}  // namespace weir::fabric::sim
