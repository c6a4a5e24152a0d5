#include "fabric/topology/check_network.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fabric/topology/routing.hpp"

namespace weir::fabric {
namespace {

void check_hosts_have_links(const Network& network, Complaints& complaints) {
  for (const auto& node : network.nodes) {
    if (!node.ports.empty()) continue;
    const auto* kind = node.kind == NodeKind::host ? "host" : "switch";
    complaints.add(node.place, fmt::format("{} '{}' has no link", kind, node.name),
                   "join it with [[link]] or remove it");
  }
}

void check_host_links(const Network& network, Complaints& complaints) {
  for (const auto& link : network.links) {
    const auto a = network[link.a].node, b = network[link.b].node;
    if (network[a].kind == NodeKind::host && network[b].kind == NodeKind::host)
      complaints.add(
          link.place,
          fmt::format("hosts '{}' and '{}' are joined without a switch", network[a].name, network[b].name),
          "put a switch between them: there is nothing to plan otherwise");
  }
}

// Every switch with hosts must have a path to every group of hosts.
void check_reach(const Network& network, const Routes& routes, Complaints& complaints) {
  for (std::uint32_t g = 0; g < routes.group_count(); ++g) {
    const auto to = routes.hosts_of(g).front();
    for (std::uint32_t from = 0; from < routes.group_count(); ++from) {
      const auto host = routes.hosts_of(from).front();
      const auto leads_there = [&](PortId port) {
        return !routes.next_ports(network.neighbor(port), to).empty();
      };
      if (host == to || std::ranges::any_of(network[host].ports, leads_there)) continue;
      complaints.add(network[to].place,
                     fmt::format("no path from host '{}' to host '{}'", network[host].name, network[to].name),
                     network.routing == RoutingRule::up_down
                         ? "join their parts with [[link]], or set [routing] rule = \"shortest\""
                         : "join their parts with [[link]]");
      return;  // the first names the parts; more would only repeat it
    }
  }
}

void check_loops(const Network& network, const Routes& routes, Complaints& complaints) {
  const auto loop = find_routing_loop(network, routes);
  if (loop.nodes.empty()) return;
  std::string circle;
  for (const auto node : loop.nodes) circle += network[node].name + " -> ";
  circle += network[loop.nodes.front()].name;
  // Report it at a static route on the loop: one of these caused it.
  const auto culprit = std::ranges::find_if(network.static_routes, [&](const StaticRoute& route) {
    return std::ranges::find(loop.nodes, route.at) != loop.nodes.end() &&
           std::ranges::find(route.to, loop.host) != route.to.end();
  });
  const auto place = culprit == network.static_routes.end() ? Place{} : culprit->place;
  complaints.add(
      place, fmt::format("packets for '{}' run in a loop: {}", network[loop.host].name, circle),
      "change 'via' of one of these static routes; where a switch passes packets on in a tunnel (the "
      "standby of a dual-ToR pair), say [[detour]] instead");
}

}  // namespace

void check_network(const Network& network, const Place& file, Complaints& complaints) {
  const auto is_switch = [](const Node& node) { return node.kind == NodeKind::switch_; };
  if (std::ranges::none_of(network.nodes, is_switch)) {
    complaints.add(file, "a network without a switch",
                   "describe one: [leaf_spine], [fat_tree], or [[switch]] and [[link]]");
    return;
  }
  check_hosts_have_links(network, complaints);
  check_host_links(network, complaints);
  if (!complaints.none()) return;
  const Routes routes(network);
  check_reach(network, routes, complaints);
  check_loops(network, routes, complaints);
}

}  // namespace weir::fabric
