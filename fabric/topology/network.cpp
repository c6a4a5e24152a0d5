#include "fabric/topology/network.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace weir::fabric {
namespace {

constexpr double lane_bps = 25e9;
constexpr std::string_view sonic_prefix = "Ethernet";

std::uint32_t lanes_of(std::uint64_t speed_bps) {
  return std::max<std::uint32_t>(
      1, static_cast<std::uint32_t>(std::ceil(static_cast<double>(speed_bps) / lane_bps)));
}

std::string next_port_name(const Node& node) {
  return std::string(sonic_prefix) + std::to_string(node.next_lane);
}

// The number of the first lane after this port.
std::uint64_t lane_behind(std::string_view name, std::uint64_t speed_bps) {
  std::uint32_t number = 0;
  if (name.starts_with(sonic_prefix)) name.remove_prefix(sonic_prefix.size());
  std::from_chars(name.data(), name.data() + name.size(), number);
  return std::uint64_t{number} + lanes_of(speed_bps);
}

}  // namespace

bool TrafficClasses::is_lossless(std::size_t priority) const {
  return std::ranges::find(lossless, priority) != lossless.end();
}

std::optional<NodeId> Network::find(std::string_view node) const {
  const auto found = std::ranges::find(nodes, node, &Node::name);
  if (found == nodes.end()) return std::nullopt;
  return NodeId{static_cast<std::uint32_t>(found - nodes.begin())};
}

std::optional<PortId> Network::find_port(NodeId node, std::string_view port) const {
  for (const auto id : nodes[node.index].ports)
    if (ports[id.index].name == port) return id;
  return std::nullopt;
}

double Network::outbound_delay_ns(PortId port) const {
  const auto& link = links[ports[port.index].link.index];
  return link.cable.ns_per_m * (link.a == port ? link.cable.length_m : link.cable.return_length_m);
}

NodeId Network::add_node(Node node) {
  nodes.push_back(std::move(node));
  return {static_cast<std::uint32_t>(nodes.size() - 1)};
}

LinkId Network::add_link(NodeId a, std::string a_name, NodeId b, std::string b_name, std::uint64_t speed_bps,
                         Cable cable, Place place) {
  const LinkId link{static_cast<std::uint32_t>(links.size())};
  const PortId a_port{static_cast<std::uint32_t>(ports.size())};
  const PortId b_port{a_port.index + 1};
  const auto take_lanes = [this, speed_bps](Node& node, std::string& port) {
    if (port.empty()) {
      if (node.kind == NodeKind::switch_ && !models[node.model].ports.empty()) return;
      port = next_port_name(node);
    }
    node.next_lane = std::max(node.next_lane, lane_behind(port, speed_bps));
  };
  take_lanes(nodes[a.index], a_name);
  take_lanes(nodes[b.index], b_name);
  links.push_back({a_port, b_port, speed_bps, cable, std::move(place)});
  ports.push_back({std::move(a_name), a, link, b_port});
  ports.push_back({std::move(b_name), b, link, a_port});
  nodes[a.index].ports.push_back(a_port);
  nodes[b.index].ports.push_back(b_port);
  return link;
}

}  // namespace weir::fabric
