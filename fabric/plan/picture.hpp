// The pictures of a plan, as SVG elements to be put into an HTML page.
#pragma once

#include <string>

#include "fabric/plan/plan_network.hpp"

namespace weir::fabric {

// The network; links on a cycle of buffers in red with their direction, those that more is offered to than
// they carry in amber, the wider the hotter.
std::string topology_picture(const Plan& plan);

// The switch's whole buffer as one bar, to scale; below it the part that is set aside, a slice for each
// lossless priority group of each port.
std::string buffer_picture(const SwitchPlan& kind, const Network& network);

// One priority group of a port, as it fills: Kmin, Kmax, XON, XOFF, then headroom. To scale.
std::string queue_picture(const SwitchPlan& kind, const PortPlan& port);

}  // namespace weir::fabric
