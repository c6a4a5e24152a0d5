// The pictures of a plan, as SVG elements to be put into an HTML page.
#pragma once

#include <string>
#include <string_view>

#include "fabric/plan/plan_network.hpp"

namespace weir::fabric {

// Switches by tier (in a circle where there are no tiers) and the links between them: those on a cycle of
// buffers in red with their direction, those that more is offered to than they carry in amber, the wider the
// hotter.
std::string topology_picture(const Plan& plan);

// The switch's whole buffer as one bar, to scale.
std::string buffer_picture(const SwitchPlan& kind);

// One priority group of a port, as it fills: Kmin, Kmax, XON, XOFF, then headroom. To scale.
std::string queue_picture(const SwitchPlan& kind, const PortPlan& port);

std::string escaped(std::string_view text);  // for HTML

}  // namespace weir::fabric
