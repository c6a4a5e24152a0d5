// CLUSTER SLOTS, as a client of the cluster asks it.
#pragma once

#include <string_view>
#include <vector>

#include "cli/client/reply.hpp"
#include "cluster/slot_range.hpp"

namespace weir::client {

// An empty host in the reply stands for `asked_host`, the node that gave it. An error says what is wrong; a
// node that has no cluster answers with an error of its own.
Result<std::vector<cluster::SlotRange>> read_cluster_slots(const Reply& reply, std::string_view asked_host);

}  // namespace weir::client
