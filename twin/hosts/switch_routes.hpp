// Where the switches of a plan send packets: over all shortest ways, as routers with equal costs do.
//
// Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "twin/hosts/network_plan.hpp"

namespace weir::hosts {

// For each switch and each host, the cables over which that switch sends packets for it, ascending; none: it
// cannot be reached. Only plugged cables count. Hosts do not pass anything on.
using SwitchRoutes = std::vector<std::vector<std::vector<std::size_t>>>;
SwitchRoutes shortest_routes(const NetworkPlan& plan, const std::vector<bool>& plugged);

}  // namespace weir::hosts
