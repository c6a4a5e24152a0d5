// A node's answer to CLUSTER SLOTS: which primary has which slots, and its replicas.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/node_address.hpp"
#include "cluster/slot_range.hpp"

namespace weir::kv::cluster {

using weir::cluster::NodeAddress;
using weir::cluster::SlotRange;

struct Topology {
  static constexpr std::size_t most_ranges = 16384;
  static constexpr std::size_t most_nodes = 4096;

  std::vector<SlotRange> ranges;      // in the node's order; unassigned slots are absent
  std::vector<NodeAddress> replicas;  // further nodes that can be asked
};

// `reply` is one whole RESP reply from the node `asked`: a node that does not know its own address sends an
// empty host. The error says what is wrong with the reply.
std::expected<Topology, std::string> read_topology(std::string_view reply, const NodeAddress& asked);

}  // namespace weir::kv::cluster
