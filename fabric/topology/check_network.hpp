// What a network as a whole must be: connected, and without a loop in its static routes.
#pragma once

#include "fabric/topology/network.hpp"

namespace weir::fabric {

void check_network(const Network& network, const Place& file, Complaints& complaints);

}  // namespace weir::fabric
