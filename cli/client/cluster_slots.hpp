// Parses CLUSTER SLOTS, for a client of the cluster.
#pragma once

#include <string_view>
#include <vector>

#include "cli/client/reply.hpp"
#include "cluster/slot_range.hpp"

namespace weir::client {

// An empty host in the reply means `asked_host`, the node that replied. The error says what is wrong; a node
// without a cluster replies with an error of its own.
Result<std::vector<cluster::SlotRange>> read_cluster_slots(const Reply& reply, std::string_view asked_host);

}  // namespace weir::client
