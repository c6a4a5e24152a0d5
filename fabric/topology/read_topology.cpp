// From the tables of a file to a Network: the cabling, generated or written by
// hand, and static routes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fabric/topology/network_reader.hpp"
#include "spelling/did_you_mean.hpp"

namespace weir::fabric {
namespace {

constexpr Range count_range{1, 65536};
constexpr Range speed_range{1e6, 10e12};
constexpr Range cable_range{0, 200e3};  // SONiC has tables for 120 km

// A node's name precedes the ':' of a port, appears in pictures, and is the folder of its config_db.json. A
// name with a path would overwrite files elsewhere.
bool is_node_name(std::string_view name) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  return !name.empty() && name.find_first_not_of(allowed) == std::string_view::npos &&
         name.find_first_not_of('.') != std::string_view::npos;
}

// A port's name is part of config_db.json's keys, before a '|', and of lines of text.
bool is_port_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~' && c != '|'; });
}

}  // namespace

std::optional<std::uint32_t> NetworkReader::model(Table& table, std::string_view key) {
  const auto name = table.string(key);
  if (!name) {
    if (!table.has(key)) table.missing(key, "name a switch model");
    return std::nullopt;
  }
  const auto found = std::ranges::find(network_.models, *name, &SwitchModel::name);
  if (found != network_.models.end()) return static_cast<std::uint32_t>(found - network_.models.begin());
  std::vector<std::string_view> names;
  for (const auto& known : network_.models) names.push_back(known.name);
  const std::string_view meant = nearest(*name, names);
  table.complain(
      key, fmt::format("no switch model '{}'", *name),
      fmt::format("{}known: {}; or describe it with [[switch_model]]",
                  meant.empty() ? "" : fmt::format("did you mean '{}'? ", meant), fmt::join(names, ", ")));
  return std::nullopt;
}

std::uint32_t NetworkReader::count(Table& table, std::string_view key, std::uint32_t otherwise, bool needed) {
  if (needed && !table.has(key)) table.missing(key, "say how many");
  return static_cast<std::uint32_t>(table.integer(key, count_range).value_or(otherwise));
}

std::uint64_t NetworkReader::speed(Table& table, std::string_view key) {
  if (!table.has(key)) table.missing(key, "give a speed such as \"100G\"");
  return static_cast<std::uint64_t>(table.quantity(key, Unit::bits_per_second, speed_range).value_or(100e9));
}

Cable NetworkReader::cable(Table& table, std::string_view length_key, std::string_view kind_key) {
  Cable cable;
  if (!table.has(length_key)) table.missing(length_key, "give the length of the cable such as \"5m\"");
  cable.length_m = table.quantity(length_key, Unit::meters, cable_range).value_or(0);
  cable.return_length_m = cable.length_m;
  const auto kind = table.word(kind_key, {"copper", "fibre", "aoc"});
  if (kind == "copper") cable.kind = CableKind::copper;
  if (kind == "aoc") cable.kind = CableKind::active_optical;
  return cable;
}

LevelLinks NetworkReader::read_level(Table& table, std::string_view to) {
  LevelLinks links;
  links.speed_bps = speed(table, fmt::format("{}_speed", to));
  links.cable = cable(table, fmt::format("{}_cable", to), fmt::format("{}_cable_kind", to));
  return links;
}

bool NetworkReader::fits(std::uint64_t count, std::string_view of_what, const Table& table) {
  if (count <= limits_.most_nodes) return true;
  complaints_.add(table.place(), fmt::format("{} would be {} {}", table.name(), count, of_what),
                  fmt::format("{} is the limit", limits_.most_nodes));
  return false;
}

void NetworkReader::read_leaf_spine(Table table) {
  LeafSpine shape{};
  shape.place = table.place();
  shape.spines = count(table, "spines", 1, true);
  shape.leaves = count(table, "leaves", 1, true);
  shape.hosts_per_leaf = count(table, "hosts_per_leaf", 1, true);
  shape.links_per_pair = count(table, "links_per_pair", 1);
  shape.to_host = read_level(table, "host");
  shape.to_spine = read_level(table, "spine");
  const auto leaf = model(table, "leaf_model"), spine = model(table, "spine_model");
  table.finish();
  network_.generator = "leaf-spine";
  const auto links = std::uint64_t{shape.links_per_pair} * shape.spines * shape.leaves;
  if (!complaints_.none() || !fits(node_count(shape), "nodes", table) || !fits(links, "links", table)) return;
  shape.leaf_model = *leaf;
  shape.spine_model = *spine;
  generate(shape, network_);
}

void NetworkReader::read_fat_tree(Table table) {
  FatTree shape{};
  shape.place = table.place();
  const auto k = table.integer("k", {2, 128});
  if (k && *k % 2) table.complain("k", fmt::format("k is {}", *k), "a k-ary fat tree needs an even k");
  const auto half = static_cast<std::uint32_t>(k.value_or(0) / 2);
  const bool needed = !table.has("k");
  shape.pods = count(table, "pods", 2 * half, needed);
  shape.tors_per_pod = count(table, "tors_per_pod", half, needed);
  shape.aggs_per_pod = count(table, "aggs_per_pod", half, needed);
  shape.cores = count(table, "cores", half * half, needed);
  shape.hosts_per_tor = count(table, "hosts_per_tor", half, needed);
  shape.to_host = read_level(table, "host");
  shape.to_agg = read_level(table, "agg");
  shape.to_core = read_level(table, "core");
  const auto tor = model(table, "tor_model"), agg = model(table, "agg_model"),
             core = model(table, "core_model");
  if (shape.aggs_per_pod && shape.cores % shape.aggs_per_pod)
    table.complain(
        "cores", fmt::format("{} cores over {} aggregation switches a pod", shape.cores, shape.aggs_per_pod),
        "each aggregation switch gets the same number: make cores a multiple of aggs_per_pod");
  table.finish();
  network_.generator = "fat-tree";
  const auto links =
      std::uint64_t{shape.pods} * (std::uint64_t{shape.tors_per_pod} * shape.aggs_per_pod + shape.cores);
  if (!complaints_.none() || !fits(node_count(shape), "nodes", table) || !fits(links, "links", table)) return;
  shape.tor_model = *tor;
  shape.agg_model = *agg;
  shape.core_model = *core;
  generate(shape, network_);
}

void NetworkReader::read_generators() {
  if (auto table = root_.table("leaf_spine")) read_leaf_spine(std::move(*table));
  if (auto table = root_.table("fat_tree")) {
    if (!network_.generator.empty())
      table->complain("k", "both [leaf_spine] and [fat_tree]",
                      "keep one; join networks with [[link]] otherwise");
    else
      read_fat_tree(std::move(*table));
  }
  network_.tiered = !network_.generator.empty();
}

void NetworkReader::take_node(Node node) {
  const auto place = node.place;
  const auto name = node.name;
  if (!is_node_name(name)) {
    complaints_.add(place, fmt::format("'{}' is no name for a node", name),
                    "use letters, digits, '-', '_' and '.', not dots alone");
    return;
  }
  if (network_.nodes.size() >= limits_.most_nodes) {
    complaints_.add(place, "too many nodes", fmt::format("{} is the limit", limits_.most_nodes));
    return;
  }
  const NodeId id{static_cast<std::uint32_t>(network_.nodes.size())};
  if (by_name_.try_emplace(name, id).second)
    network_.add_node(std::move(node));
  else
    complaints_.add(place, fmt::format("two nodes are called '{}'", name),
                    "give each node a name of its own");
}

void NetworkReader::read_nodes() {
  index_names();
  bool all_tiered = true, any_tiered = false;
  for (auto& table : root_.tables("switch")) {
    Node node;
    node.kind = NodeKind::switch_;
    node.place = table.place();
    if (!table.has("name")) table.missing("name", "name the switch");
    node.name = table.string("name").value_or(fmt::format("switch at line {}", node.place.line));
    node.model = model(table, "model").value_or(0);
    const auto tier = table.integer("tier", {1, 100});
    (tier ? any_tiered : all_tiered) = tier.has_value();
    node.tier = static_cast<std::uint32_t>(tier.value_or(0));
    table.finish();
    if (table.has("name")) take_node(std::move(node));
  }
  for (auto& table : root_.tables("host")) {
    const auto place = table.place();
    if (!table.has("name")) table.missing("name", "name the host");
    if (const auto name = table.string("name")) take_node({*name, NodeKind::host, 0, 0, {}, place});
    table.finish();
  }
  network_.tiered = all_tiered && (any_tiered || network_.tiered);
}

void NetworkReader::index_names() {
  for (std::uint32_t n = 0; n < network_.nodes.size(); ++n)
    by_name_.emplace(network_.nodes[n].name, NodeId{n});
}

std::optional<NodeId> NetworkReader::node(const At<std::string>& name) {
  const auto found = by_name_.find(name.value);
  if (found != by_name_.end()) return found->second;
  complaints_.add(name.place, fmt::format("no node '{}'", name.value), "add it with [[switch]] or [[host]]");
  return std::nullopt;
}

void NetworkReader::read_links() {
  for (auto& table : root_.tables("link")) {
    auto ends = table.strings("between");
    if (ends.size() != 2)
      table.complain("between", fmt::format("a link has {} ends", ends.size()),
                     "write between = [\"one\", \"other\"], each \"node\" or \"node:port\"");
    const auto bps = speed(table, "speed");
    auto wire = cable(table, "cable", "kind");
    if (const auto back = table.quantity("return_cable", Unit::meters, cable_range))
      wire.return_length_m = *back;
    wire.ns_per_m = table.number("ns_per_m", {1, 100}).value_or(default_ns_per_m);
    const auto links = count(table, "count", 1);
    table.finish();
    if (ends.size() != 2 || !fits(network_.links.size() + links, "links", table)) continue;
    std::array<std::string, 2> ports;
    for (std::size_t e = 0; e < 2; ++e)
      if (const auto colon = ends[e].value.find(':'); colon != std::string::npos) {
        ports[e] = ends[e].value.substr(colon + 1);
        ends[e].value.resize(colon);
        if (!is_port_name(ports[e]))
          complaints_.add(ends[e].place,
                          fmt::format("'{}' is no name for a port of {}", ports[e], ends[e].value),
                          "use letters, digits and signs, without spaces and '|', or leave out the ':'");
      }
    const auto a = node(ends[0]), b = node(ends[1]);
    if (!a || !b) continue;
    if (a == b) table.complain("between", "a link of a node with itself", "join two different nodes");
    if (links > 1 && !(ports[0].empty() && ports[1].empty()))
      table.complain("count", "several links cannot use one port",
                     "leave out the port names, or write the links singly");
    for (std::size_t e = 0; e < 2; ++e)
      if (!ports[e].empty() && network_.find_port(e ? *b : *a, ports[e]))
        complaints_.add(ends[e].place,
                        fmt::format("port {} of {} has a link already", ports[e], ends[e].value),
                        "a port has one link: name another port");
    for (std::uint32_t i = 0; i < links && a != b; ++i)
      network_.add_link(*a, ports[0], *b, ports[1], bps, wire, table.place());
  }
}

std::optional<NodeId> NetworkReader::read_switch(Table& table, std::string_view key, std::string_view does) {
  if (!table.has(key)) table.missing(key, fmt::format("name the switch that {}", does));
  const auto name = table.string(key);
  if (!name) return std::nullopt;
  const auto found = node({*name, table.place(key)});
  if (found && network_[*found].kind == NodeKind::host)
    table.complain(key, fmt::format("'{}' is a host", *name), "name a switch");
  return found;
}

// Reads 'to': hosts, or switches, which stand for all their hosts.
std::vector<NodeId> NetworkReader::read_hosts(Table& table) {
  std::vector<NodeId> hosts;
  for (const auto& to : table.strings("to")) {
    const auto target = node(to);
    if (!target) continue;
    if (network_[*target].kind == NodeKind::host) {
      hosts.push_back(*target);
    } else {
      for (const auto port : network_[*target].ports)
        if (const auto host = network_.neighbor(port); network_[host].kind == NodeKind::host)
          hosts.push_back(host);
    }
  }
  if (!table.has("to")) table.missing("to", "name hosts, or switches for all of their hosts");
  return hosts;
}

void NetworkReader::read_detour(Table& table) {
  Detour detour;
  detour.place = table.place();
  const auto at = read_switch(table, "at", "passes the packets on");
  detour.to = read_hosts(table);
  const auto through = read_switch(table, "through", "they are passed on to");
  detour.remapped = table.boolean("remapped").value_or(false);
  if (at && through && *at == *through)
    table.complain("through", "a detour that stays where it is", "name the other switch");
  if (complaints_.none() && detour.to.empty())
    table.complain("to", "a detour to no host", "name hosts, or switches that have some");
  table.finish();
  if (!complaints_.none()) return;
  detour.at = *at;
  detour.through = *through;
  network_.detours.push_back(std::move(detour));
}

void NetworkReader::read_route(Table& table) {
  StaticRoute route;
  route.place = table.place();
  const auto at = read_switch(table, "at", "routes so");
  const bool at_known = at.has_value();
  if (at) route.at = *at;
  route.to = read_hosts(table);
  for (const auto& via : table.strings("via")) {
    if (!at_known) continue;  // without the node its neighbors are unknown
    const auto before = route.via.size();
    for (const auto port : network_[route.at].ports)
      if (network_[port].name == via.value || network_[network_.neighbor(port)].name == via.value)
        route.via.push_back(port);
    // Hosts do not forward: packets for others would end there, or come back.
    for (auto port = before; port < route.via.size(); ++port)
      if (const auto next = network_.neighbor(route.via[port]);
          network_[next].kind == NodeKind::host &&
          std::ranges::any_of(route.to, [next](NodeId host) { return host != next; }))
        complaints_.add(via.place,
                        fmt::format("'{}' is a host, which passes nothing on to others", network_[next].name),
                        "name a switch, or the port towards one");
    if (route.via.size() == before)
      complaints_.add(
          via.place, fmt::format("'{}' is no neighbor and no port of {}", via.value, network_[route.at].name),
          "name the next node or the port towards it");
  }
  if (!table.has("via")) table.missing("via", "name the next node or the port towards it");
  if (complaints_.none() && route.to.empty())
    table.complain("to", "a route to no host", "name hosts, or switches that have some");
  if (complaints_.none() && route.via.empty())
    table.complain("via", "a route that leads nowhere", "name the next node or the port towards it");
  table.finish();
  if (complaints_.none()) network_.static_routes.push_back(std::move(route));
}

void NetworkReader::read_routing() {
  network_.routing = network_.tiered ? RoutingRule::up_down : RoutingRule::shortest;
  if (auto table = root_.table("routing")) {
    if (const auto rule = table->word("rule", {"shortest", "up-down"})) {
      network_.routing = *rule == "shortest" ? RoutingRule::shortest : RoutingRule::up_down;
      if (network_.routing == RoutingRule::up_down && !network_.tiered)
        table->complain("rule", "up-down routing needs to know what is up",
                        "give every [[switch]] a tier (1 for those with hosts), or use \"shortest\"");
    }
    table->finish();
  }
  auto routes = root_.tables("route"), detours = root_.tables("detour");
  if (!complaints_.none()) return;  // nodes that could not be read would only cause more complaints
  for (auto& table : routes) read_route(table);
  for (auto& table : detours) read_detour(table);
}

}  // namespace weir::fabric
