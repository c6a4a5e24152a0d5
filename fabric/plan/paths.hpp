// What follows from the routed paths: how long the longest is, and which links would be loaded beyond their
// speed.
#pragma once

#include <vector>

#include "fabric/plan/plan.hpp"
#include "fabric/topology/routing.hpp"

namespace weir::fabric {

// There and back without queues: cables, switches, and one full frame stored at each hop. Over pairs of a
// first host and one of each group, which is all pairs in a network from a generator.
double longest_rtt_ns(const Network& network, const Routes& routes);

// Links between switches that carry more than their speed when every host sends at its speed to all others
// alike and ECMP splits evenly. The worst first.
std::vector<LinkLoad> hot_links(const Network& network, const Routes& routes);

}  // namespace weir::fabric
