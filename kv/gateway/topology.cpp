#include "kv/gateway/topology.hpp"

#include <optional>

#include "cluster/key_slot.hpp"
#include "kv/gateway/reply_reader.hpp"

namespace weir::kv::cluster {

using weir::cluster::may_be_host;
using weir::cluster::slot_count;

namespace {

struct NamedNode {
  std::optional<NodeAddress> address;  // nothing: the node that was asked does not know it
};

// [host, port, id, ...]
std::optional<NamedNode> read_node(ReplyReader& reader, const NodeAddress& asked) {
  const auto fields = reader.array();
  if (!fields || *fields < 2) return std::nullopt;
  const auto host = reader.text();
  const auto port = reader.integer();
  if (!host || !port || *port < 0 || *port > 65535) return std::nullopt;
  for (std::int64_t i = 2; i < *fields; ++i) {
    if (!reader.skip()) return std::nullopt;
  }
  if (*host == "?" || *port == 0) return NamedNode{};
  const std::string_view known = host->empty() ? std::string_view(asked.host) : *host;
  if (!may_be_host(known)) return std::nullopt;
  return NamedNode{NodeAddress{std::string(known), static_cast<std::uint16_t>(*port)}};
}

// [first, last, primary, replica...]
bool read_range(ReplyReader& reader, const NodeAddress& asked, Topology& into) {
  const auto fields = reader.array();
  if (!fields || *fields < 3) return false;
  const auto first = reader.integer();
  const auto last = reader.integer();
  if (!first || !last || *first < 0 || *first > *last || *last >= slot_count) return false;
  for (std::int64_t i = 2; i < *fields; ++i) {
    const auto node = read_node(reader, asked);
    if (!node) return false;
    if (!node->address) continue;
    if (i == 2) {
      into.ranges.push_back(
          {static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last), *node->address});
    } else if (into.replicas.size() < Topology::most_nodes) {
      into.replicas.push_back(*node->address);
    }
  }
  return true;
}

}  // namespace

std::expected<Topology, std::string> read_topology(std::string_view reply, const NodeAddress& asked) {
  if (reply.starts_with('-'))
    return std::unexpected("it answers CLUSTER SLOTS: " +
                           std::string(reply.substr(1, std::min<std::size_t>(reply.find('\r') - 1, 200))));
  ReplyReader reader(reply);
  const auto ranges = reader.array();
  if (!ranges || *ranges < 0 || *ranges > static_cast<std::int64_t>(Topology::most_ranges))
    return std::unexpected("its answer to CLUSTER SLOTS makes no sense");
  Topology topology;
  for (std::int64_t i = 0; i < *ranges; ++i) {
    if (!read_range(reader, asked, topology))
      return std::unexpected("its answer to CLUSTER SLOTS makes no sense");
  }
  return topology;
}

}  // namespace weir::kv::cluster
