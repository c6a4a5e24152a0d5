// The pictures of a plan, as SVG elements for an HTML page.
#pragma once

#include <string>

#include "fabric/plan/plan_network.hpp"

namespace weir::fabric {

// The network. Links on a cycle of buffers are red with their direction. Overloaded links are amber, and
// wider the more they are overloaded.
std::string topology_picture(const Plan& plan);

// A switch's whole buffer as one bar, to scale. Below it is the reserved part, with a slice for each lossless
// priority group of each port.
std::string buffer_picture(const SwitchPlan& kind, const Network& network);

// One priority group of a port as it fills: Kmin, Kmax, XON, XOFF, headroom. To scale.
std::string queue_picture(const SwitchPlan& kind, const PortPlan& port);

}  // namespace weir::fabric
