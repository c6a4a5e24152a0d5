// Checks a network as a whole: it must be connected, and its static routes must have no loop.
#pragma once

#include "fabric/topology/network.hpp"

namespace weir::fabric {

void check_network(const Network& network, const Place& file, Complaints& complaints);

}  // namespace weir::fabric
