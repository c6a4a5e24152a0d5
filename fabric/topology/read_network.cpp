// From the tables of a file to a Network: models, classes, hints, then nodes (generated and written), links,
// routes.
#include "fabric/topology/read_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <unordered_map>

#include "fabric/topology/check_network.hpp"
#include "fabric/topology/generate.hpp"

namespace weir::fabric {
namespace {

constexpr Range count_range{1, 65536};
constexpr Range speed_range{1e6, 10e12};
constexpr Range cable_range{0, 100e3};
constexpr Range mtu_range{64, 65535};
constexpr Range watchdog_detection_range{100, 5000};  // these three as SONiC's YANG model has them
constexpr Range watchdog_restoration_range{100, 60000};
constexpr std::uint32_t longest_poll_ms = 1000;
constexpr Range watchdog_poll_range{100, longest_poll_ms};

class NetworkReader {
 public:
  NetworkReader(Table& root, const FileOpener& open, Complaints& complaints, const ReadLimits& limits)
      : root_(root), open_(open), complaints_(complaints), limits_(limits) {}

  Network read() {
    network_.name = root_.string("name").value_or("network");
    read_models();
    read_classes();
    read_hints();
    read_overrides();
    read_generators();
    read_nodes();
    read_links();
    read_routing();
    return std::move(network_);
  }

 private:
  void read_models();
  void add_model(SwitchModel model);
  void read_classes();
  void read_dscps();
  void read_hints();
  void read_overrides();
  void read_generators();
  void read_leaf_spine(Table table);
  void read_fat_tree(Table table);
  LevelLinks read_level(Table& table, std::string_view to);
  void take_node(Node node);
  void read_nodes();
  void read_links();
  void read_routing();
  void read_route(Table& table);

  std::optional<std::uint32_t> model(Table& table, std::string_view key);
  std::uint32_t count(Table& table, std::string_view key, std::uint32_t otherwise, bool needed = false);
  std::uint64_t speed(Table& table, std::string_view key);
  Cable cable(Table& table, std::string_view length_key, std::string_view kind_key);
  std::optional<NodeId> node(const At<std::string>& name);
  void index_names();
  bool fits(std::uint64_t nodes, const Table& table);

  Table& root_;
  const FileOpener& open_;
  Complaints& complaints_;
  ReadLimits limits_;
  Network network_;
  std::unordered_map<std::string, NodeId> by_name_;
};

void NetworkReader::add_model(SwitchModel model) {
  const auto same = std::ranges::find(network_.models, model.name, &SwitchModel::name);
  if (same == network_.models.end())
    network_.models.push_back(std::move(model));
  else if (std::ranges::find(built_in_models(), model.name, &SwitchModel::name) != built_in_models().end() &&
           same->place.file != model.place.file)
    *same = std::move(model);  // a file may correct a model that comes with Weir
  else
    complaints_.add(model.place, fmt::format("switch model '{}' is there twice", model.name),
                    "rename one of them");
}

void NetworkReader::read_models() {
  network_.models = built_in_models();
  for (const auto& [name, place] : root_.strings("models")) {
    const auto text = open_(name);
    if (!text) {
      complaints_.add(place, fmt::format("cannot read the file of switch models '{}'", name),
                      "give a path relative to this file");
      continue;
    }
    const auto document = Document::parse(*text, name, complaints_);
    if (!document) continue;
    auto root = document->root(complaints_);
    for (auto& table : root.tables("switch_model")) add_model(read_switch_model(table));
    root.finish();
  }
  for (auto& table : root_.tables("switch_model")) add_model(read_switch_model(table));
}

std::optional<std::uint32_t> NetworkReader::model(Table& table, std::string_view key) {
  const auto name = table.string(key);
  if (!name) {
    if (!table.has(key)) table.missing(key, "name a switch model");
    return std::nullopt;
  }
  const auto found = std::ranges::find(network_.models, *name, &SwitchModel::name);
  if (found != network_.models.end()) return static_cast<std::uint32_t>(found - network_.models.begin());
  std::vector<std::string> names;
  for (const auto& known : network_.models) names.push_back(known.name);
  table.complain(key, fmt::format("no switch model '{}'", *name),
                 fmt::format("known: {}; or describe it with [[switch_model]]", fmt::join(names, ", ")));
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

void NetworkReader::read_classes() {
  auto& classes = network_.classes;
  if (auto table = root_.table("lossless")) {
    if (table->has("priorities")) {
      std::set<std::uint8_t> unique;
      for (const auto& [priority, place] : table->integers("priorities", {0, priorities - 1}))
        if (!unique.insert(static_cast<std::uint8_t>(priority)).second)
          complaints_.add(place, fmt::format("priority {} is there twice", priority), "remove one");
      if (unique.empty())
        table->complain("priorities", "no lossless priority", "give at least one, such as [3]");
      classes.lossless.assign(unique.begin(), unique.end());
    }
    const auto bytes = [&](std::string_view key, std::uint32_t& value) {
      if (const auto given = table->quantity(key, Unit::bytes, mtu_range))
        value = static_cast<std::uint32_t>(*given);
    };
    bytes("port_mtu", classes.mtu_bytes);
    bytes("lossless_mtu", classes.lossless_mtu_bytes);
    bytes("smallest_packet", classes.smallest_packet_bytes);
    classes.small_packet_percentage = table->number("small_packet_percentage", {0, 100}).value_or(100);
    if (classes.lossless_mtu_bytes > classes.mtu_bytes)
      table->complain("lossless_mtu", "lossless_mtu is larger than port_mtu", "give at most port_mtu");
    table->finish();
  }
  if (auto table = root_.table("scheduling")) {
    for (const auto& [priority, place] : table->integers("strict", {0, priorities - 1}))
      classes.strict.push_back(static_cast<std::uint8_t>(priority));
    table->finish();
  }
  read_dscps();
}

void NetworkReader::read_dscps() {
  auto& map = network_.classes.dscp_to_priority;
  for (std::size_t dscp = 0; dscp < dscps; ++dscp) map[dscp] = static_cast<std::uint8_t>(dscp / priorities);
  auto table = root_.table("dscp");
  if (!table) return;
  for (const auto& [key, place] : table->other_keys()) {
    unsigned dscp = dscps;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), dscp);
    if (error != std::errc{} || end != key.data() + key.size() || dscp >= dscps) {
      complaints_.add(place, fmt::format("'{}' is no DSCP", key),
                      "write lines such as 26 = 3, the DSCP 0 to 63");
      continue;
    }
    if (const auto priority = table->integer(key, {0, priorities - 1}))
      map[dscp] = static_cast<std::uint8_t>(*priority);
  }
}

void NetworkReader::read_hints() {
  auto table = root_.table("traffic");
  if (!table) return;
  auto& hints = network_.hints;
  hints.incast = count(*table, "incast", hints.incast);
  hints.congested_queues = count(*table, "congested_queues", hints.congested_queues);
  hints.spread = count(*table, "spread", hints.spread);
  hints.rtt_ns = table->quantity("rtt", Unit::nanoseconds, {1, 1e9});
  table->finish();
}

void NetworkReader::read_overrides() {
  auto& plan = network_.overrides;
  auto table = root_.table("plan");
  if (!table) return;
  plan.place = table->place();
  if (const auto th = table->integer("dynamic_th", {-7, 3})) plan.dynamic_th = static_cast<int>(*th);
  plan.kmin_bytes = table->quantity("kmin", Unit::bytes, {1, 1e12});
  plan.kmax_bytes = table->quantity("kmax", Unit::bytes, {1, 1e12});
  plan.pmax = table->quantity("pmax", Unit::fraction, {0.01, 1});
  plan.xon_offset_bytes = table->quantity("xon_offset", Unit::bytes, {0, 1e9});
  plan.sonic_headroom_only = table->word("headroom", {"sonic", "larger"}) == "sonic";
  plan.free_share = table->quantity("free_share", Unit::fraction, {0, 0.99}).value_or(plan.free_share);
  const auto time = [&](std::string_view key, Range range, std::optional<std::uint32_t>& value) {
    const auto ns = table->quantity(key, Unit::nanoseconds, {range.least * 1e6, range.most * 1e6});
    if (ns) value = static_cast<std::uint32_t>(*ns / 1e6);
  };
  time("watchdog_detection", watchdog_detection_range, plan.watchdog_detection_ms);
  time("watchdog_restoration", watchdog_restoration_range, plan.watchdog_restoration_ms);
  time("watchdog_poll", watchdog_poll_range, plan.watchdog_poll_ms);
  plan.watchdog_action =
      table->word("watchdog_action", {"drop", "forward", "alert"}).value_or(plan.watchdog_action);
  if (plan.watchdog_detection_ms < plan.watchdog_poll_ms ||
      plan.watchdog_restoration_ms < plan.watchdog_poll_ms)
    table->complain("watchdog_poll", "the watchdog polls less often than it is to detect or restore",
                    "make watchdog_poll the shortest of the three times");
  if (plan.kmin_bytes && plan.kmax_bytes && *plan.kmin_bytes > *plan.kmax_bytes)
    table->complain("kmin", "kmin is above kmax", "marking begins at kmin: make it the smaller one");
  table->finish();
}

LevelLinks NetworkReader::read_level(Table& table, std::string_view to) {
  LevelLinks links;
  links.speed_bps = speed(table, fmt::format("{}_speed", to));
  links.cable = cable(table, fmt::format("{}_cable", to), fmt::format("{}_cable_kind", to));
  return links;
}

bool NetworkReader::fits(std::uint64_t nodes, const Table& table) {
  if (nodes <= limits_.most_nodes) return true;
  complaints_.add(table.place(), fmt::format("{} would be {} nodes", table.name(), nodes),
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
  if (!complaints_.none() || !fits(node_count(shape), table) || !fits(links, table)) return;
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
  if (!complaints_.none() || !fits(node_count(shape), table) || !fits(links, table)) return;
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
  if (name.empty() || name.find_first_of(": \t\"<>&'") != std::string::npos) {
    complaints_.add(place, fmt::format("'{}' is no name for a node", name),
                    "use letters, digits, '-', '_' and '.'");
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
    if (ends.size() != 2 || !fits(network_.links.size() + links, table)) continue;
    std::array<std::string, 2> ports;
    for (std::size_t e = 0; e < 2; ++e)
      if (const auto colon = ends[e].value.find(':'); colon != std::string::npos) {
        ports[e] = ends[e].value.substr(colon + 1);
        ends[e].value.resize(colon);
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

void NetworkReader::read_route(Table& table) {
  StaticRoute route;
  route.place = table.place();
  if (!table.has("at")) table.missing("at", "name the switch that routes so");
  if (const auto at = table.string("at")) {
    const auto found = node({*at, table.place("at")});
    if (found && network_[*found].kind == NodeKind::host)
      table.complain("at", fmt::format("'{}' is a host", *at), "static routes are of switches");
    if (found) route.at = *found;
  }
  for (const auto& to : table.strings("to")) {
    const auto target = node(to);
    if (!target) continue;
    if (network_[*target].kind == NodeKind::host) {
      route.to.push_back(*target);
    } else {
      for (const auto port : network_[*target].ports)
        if (const auto host = network_.neighbor(port); network_[host].kind == NodeKind::host)
          route.to.push_back(host);
    }
  }
  if (!table.has("to")) table.missing("to", "name hosts, or switches for all of their hosts");
  const auto& own_ports = network_[route.at].ports;
  for (const auto& via : table.strings("via")) {
    const auto before = route.via.size();
    for (const auto port : own_ports)
      if (network_[port].name == via.value || network_[network_.neighbor(port)].name == via.value)
        route.via.push_back(port);
    if (route.via.size() == before)
      complaints_.add(
          via.place, fmt::format("'{}' is no neighbor and no port of {}", via.value, network_[route.at].name),
          "name the next node or the port towards it");
  }
  if (!table.has("via")) table.missing("via", "name the next node or the port towards it");
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
  auto routes = root_.tables("route");
  if (!complaints_.none()) return;  // nodes that could not be read would only make more complaints
  for (auto& table : routes) read_route(table);
}

}  // namespace

std::optional<Network> read_network(Table& root, const FileOpener& open, Complaints& complaints,
                                    const ReadLimits& limits) {
  auto network = NetworkReader(root, open, complaints, limits).read();
  if (complaints.none()) check_network(network, root.place(), complaints);
  if (!complaints.none()) return std::nullopt;
  return network;
}

std::optional<Network> read_network(std::string_view text, std::string file, const FileOpener& open,
                                    Complaints& complaints, const ReadLimits& limits) {
  const auto document = Document::parse(text, std::move(file), complaints);
  if (!document) return std::nullopt;
  auto root = document->root(complaints);
  auto network = read_network(root, open, complaints, limits);
  root.finish();
  if (!complaints.none()) return std::nullopt;
  return network;
}

std::optional<Network> load_network(const std::string& path, Complaints& complaints) {
  const auto slurp = [](const std::filesystem::path& name) -> std::optional<std::string> {
    std::ifstream file(name, std::ios::binary);
    if (!file) return std::nullopt;
    std::ostringstream text;
    text << file.rdbuf();
    if (file.bad() || text.bad()) return std::nullopt;
    return std::move(text).str();
  };
  const auto text = std::filesystem::is_directory(path) ? std::nullopt : slurp(path);
  if (!text) {
    complaints.add({std::make_shared<const std::string>(path), 0, 0}, "cannot be read",
                   "give the path of a network file");
    return std::nullopt;
  }
  const auto beside = std::filesystem::path(path).parent_path();
  return read_network(*text, path, [&](const std::string& name) { return slurp(beside / name); }, complaints);
}

}  // namespace weir::fabric
