// The primaries of a cluster, with hash tags that put a key into one of a primary's slots.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/client/endpoint.hpp"
#include "cli/client/session.hpp"
#include "cluster/slot_range.hpp"

namespace weir::benchmark {

struct ClusterNode {
  client::Endpoint endpoint;
  std::vector<std::string> tags;  // including braces, each for another slot;
                                  // spread evenly over the node's slots
};

// Ordered by address. They are reached like `asked`, except for host and port.
std::vector<ClusterNode> nodes_of(std::span<const cluster::SlotRange> ranges, const client::Endpoint& asked);

// Asks the server at `asked`. An error: it is not a cluster, or nobody owns any of its slots.
client::Result<std::vector<ClusterNode>> find_cluster_nodes(const client::Endpoint& asked,
                                                            const client::Login& login,
                                                            client::Milliseconds limit);

}  // namespace weir::benchmark
