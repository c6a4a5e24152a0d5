// Consequences of the routes: the delay of the longest path, and the links that would
// carry more than their speed.
#pragma once

#include <vector>

#include "fabric/plan/plan.hpp"
#include "fabric/topology/routing.hpp"

namespace weir::fabric {

// Round trip without queues: cables, switches, and one full frame stored at each hop. Considers pairs of a
// first host and one host of each group: all pairs, in a generated network.
double longest_rtt_ns(const Network& network, const Routes& routes);

// Links between switches that carry more than their speed if every host sends at its speed to all others
// equally, and ECMP splits evenly. The worst come first.
std::vector<LinkLoad> hot_links(const Network& network, const Routes& routes);

}  // namespace weir::fabric
