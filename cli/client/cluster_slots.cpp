#include "cli/client/cluster_slots.hpp"

#include <optional>
#include <string>

#include "cluster/key_slot.hpp"

namespace weir::client {
namespace {

std::optional<std::uint16_t> integer(const Reply& reply, std::uint16_t most) {
  return reply.type == ReplyType::integer ? cluster::read_number(reply.text, most) : std::nullopt;
}

// [first, last, [host, port, ...], replicas...]. A node that does not know its primary's address says "?" or
// port 0: that is an empty address.
std::optional<cluster::SlotRange> read_range(const Reply& row, std::string_view asked_host) {
  if (row.elements.size() < 3 || row.elements[2].elements.size() < 2) return std::nullopt;
  const auto first = integer(row.elements[0], cluster::slot_count - 1);
  const auto last = integer(row.elements[1], cluster::slot_count - 1);
  const auto& node = row.elements[2].elements;
  const auto port = integer(node[1], 65535);
  const std::string_view host = node[0].text.empty() ? asked_host : std::string_view(node[0].text);
  if (!first || !last || *first > *last || !port) return std::nullopt;
  if (*port == 0 || host == "?") return cluster::SlotRange{*first, *last, {}};
  if (!cluster::may_be_host(host)) return std::nullopt;
  return cluster::SlotRange{*first, *last, {std::string(host), *port}};
}

}  // namespace

Result<std::vector<cluster::SlotRange>> read_cluster_slots(const Reply& reply, std::string_view asked_host) {
  if (reply.is_error()) return fail(ErrorKind::refused, "It does not answer CLUSTER SLOTS: " + reply.text);
  std::vector<cluster::SlotRange> ranges;
  bool sound = reply.type == ReplyType::array && reply.elements.size() <= cluster::slot_count;
  for (std::size_t i = 0; sound && i < reply.elements.size(); ++i) {
    auto range = read_range(reply.elements[i], asked_host);
    sound = range.has_value();
    if (sound && range->primary.port != 0) ranges.push_back(std::move(*range));
  }
  if (!sound) return fail(ErrorKind::protocol, "Its answer to CLUSTER SLOTS makes no sense");
  return ranges;
}

}  // namespace weir::client
