// The primaries of a cluster, and hash tags by which a key lies in one of a primary's slots.
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
  std::vector<std::string> tags;  // with their braces, each of another slot;
                                  // evenly spread over the node's slots
};

// In the order of their addresses. Reached as `asked` is, but for host and port.
std::vector<ClusterNode> nodes_of(std::span<const cluster::SlotRange> ranges, const client::Endpoint& asked);

// Asks the server there. An error if it is no cluster, or one whose slots nobody has.
client::Result<std::vector<ClusterNode>> find_cluster_nodes(const client::Endpoint& asked,
                                                            const client::Login& login,
                                                            client::Milliseconds limit);

}  // namespace weir::benchmark
