#include "fabric/topology/routing.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>

namespace weir::fabric {
namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t hash_buckets = 4096;

bool is_host(const Network& network, NodeId node) { return network[node].kind == NodeKind::host; }

}  // namespace

Routes::Routes(const Network& network, std::span<const LinkId> failed)
    : network_(&network),
      dead_(network.links.size(), false),
      group_of_(network.nodes.size(), none),
      row_of_(network.nodes.size(), none),
      sets_by_hash_(hash_buckets),
      last_hops_of_(network.nodes.size()) {
  for (const auto link : failed) dead_[link.index] = true;
  for (std::uint32_t n = 0; n < network.nodes.size(); ++n) {
    const auto& node = network.nodes[n];
    if (node.kind == NodeKind::switch_) switches_by_tier_.push_back({n});
    if (node.kind == NodeKind::switch_ || node.ports.size() > 1) row_of_[n] = rows_++;
  }
  std::ranges::stable_sort(switches_by_tier_, std::greater{},
                           [&](NodeId node) { return network[node].tier; });
  has_hosts_.resize(network.nodes.size());
  for (const auto& node : network.nodes)
    if (node.kind == NodeKind::host)
      for (const auto port : node.ports) has_hosts_[network.neighbor(port).index] = true;
  find_groups();
  find_ways();
  sets_.push_back({});  // the empty set
  table_.assign(std::size_t{rows_} * groups_.size(), 0);
  distance_.resize(network.nodes.size());
  down_distance_.resize(network.nodes.size());
  for (std::uint32_t g = 0; g < groups_.size(); ++g) fill(g);
}

void Routes::find_groups() {
  std::vector<std::vector<std::uint32_t>> statics(network_->nodes.size());
  for (std::uint32_t s = 0; s < network_->static_routes.size(); ++s)
    for (const auto host : network_->static_routes[s].to) statics[host.index].push_back(s);
  std::map<std::pair<std::vector<NodeId>, std::vector<std::uint32_t>>, std::uint32_t> known;
  for (std::uint32_t n = 0; n < network_->nodes.size(); ++n) {
    if (!is_host(*network_, {n})) continue;
    std::vector<PortId> facing;
    for (const auto port : network_->nodes[n].ports)
      if (alive(port) && !is_host(*network_, network_->neighbor(port)))
        facing.push_back((*network_)[port].peer);
    const auto by_switch = [&](PortId port) { return (*network_)[port].node; };
    std::ranges::stable_sort(facing, {}, by_switch);
    last_hops_of_[n] = {static_cast<std::uint32_t>(last_hops_.size()),
                        static_cast<std::uint32_t>(facing.size())};
    last_hops_.insert(last_hops_.end(), facing.begin(), facing.end());
    std::vector<NodeId> attached;
    for (const auto port : facing)
      if (attached.empty() || attached.back() != by_switch(port)) attached.push_back(by_switch(port));
    const auto [found, added] =
        known.try_emplace({attached, statics[n]}, static_cast<std::uint32_t>(groups_.size()));
    if (added) groups_.push_back({{}, std::move(attached), std::move(statics[n])});
    group_of_[n] = found->second;
    groups_[found->second].hosts.push_back({n});
  }
  host_groups_ = static_cast<std::uint32_t>(groups_.size());
  for (const auto& detour : network_->detours)
    if (tunnel_group(detour.through) == none) groups_.push_back({{}, {detour.through}, {}});
}

std::uint32_t Routes::tunnel_group(NodeId through) const {
  for (auto g = host_groups_; g < groups_.size(); ++g)
    if (groups_[g].attached.front() == through) return g;
  return none;
}

void Routes::find_ways() {
  for (std::uint32_t n = 0; n < network_->nodes.size(); ++n) {
    const auto first = static_cast<std::uint32_t>(ways_.size());
    tier_.push_back(network_->nodes[n].tier);
    for (const auto port : network_->nodes[n].ports)
      if (const auto to = network_->neighbor(port); !is_host(*network_, to))
        ways_.push_back({port, to.index, (*network_)[port].link.index});
    ways_of_.push_back({first, static_cast<std::uint32_t>(ways_.size()) - first});
  }
}

// Breadth first from the switches to which the group is attached.
void Routes::distances_shortest(const Group& group) {
  std::vector<NodeId> queue = group.attached;
  for (const auto node : queue) distance_[node.index] = 0;
  for (std::size_t head = 0; head < queue.size(); ++head)
    for (const auto& way : ways_of(queue[head].index)) {
      if (!alive(way) || distance_[way.to] != none) continue;
      distance_[way.to] = distance_[queue[head].index] + 1;
      queue.push_back({way.to});
    }
}

// A switch that has a way down takes it; the others go up to the nearest one that has. So
// no packet goes up again.
void Routes::distances_up_down(const Group& group) {
  std::ranges::fill(down_distance_, none);
  std::vector<NodeId> queue = group.attached;
  for (const auto node : queue) down_distance_[node.index] = 0;
  for (std::size_t head = 0; head < queue.size(); ++head)
    for (const auto& way : ways_of(queue[head].index)) {
      if (!alive(way) || down_distance_[way.to] != none || tier_[way.to] <= tier_[queue[head].index])
        continue;
      down_distance_[way.to] = down_distance_[queue[head].index] + 1;
      queue.push_back({way.to});
    }
  for (const auto node : switches_by_tier_) {
    auto& distance = distance_[node.index];
    distance = down_distance_[node.index];
    if (distance != none) continue;
    for (const auto& way : ways_of(node.index))
      if (alive(way) && tier_[way.to] > tier_[node.index] && distance_[way.to] != none)
        distance = std::min(distance, distance_[way.to] + 1);
  }
}

bool Routes::is_next_hop(std::uint32_t at, std::uint32_t neighbor) const {
  if (distance_[neighbor] == none) return false;
  if (network_->routing == RoutingRule::up_down && !is_host(*network_, {at})) {
    const bool down = down_distance_[at] != none;
    const auto here = tier_[at], there = tier_[neighbor];
    if (down) return there < here && down_distance_[neighbor] + 1 == down_distance_[at];
    if (there <= here) return false;
  }
  return distance_[neighbor] + 1 == distance_[at];
}

void Routes::fill(std::uint32_t g) {
  const auto& group = groups_[g];
  std::ranges::fill(distance_, none);
  if (network_->routing == RoutingRule::up_down)
    distances_up_down(group);
  else
    distances_shortest(group);
  std::vector<PortId> ports;
  for (std::uint32_t n = 0; n < network_->nodes.size(); ++n) {
    if (row_of_[n] == none) continue;
    table_[std::size_t{g} * rows_ + row_of_[n]] = 0;
    if (is_host(*network_, {n}))  // with several links: towards the nearest switch
      for (const auto& way : ways_of(n))
        if (alive(way) && distance_[way.to] != none)
          distance_[n] = std::min(distance_[n], distance_[way.to] + 1);
    if (distance_[n] == none || distance_[n] == 0) continue;
    ports.clear();
    for (const auto& way : ways_of(n))
      if (alive(way) && is_next_hop(n, way.to)) ports.push_back(way.port);
    table_[std::size_t{g} * rows_ + row_of_[n]] = intern(ports);
  }
  for (const auto index : group.statics) {
    const auto& route = network_->static_routes[index];
    ports.clear();
    for (const auto port : route.via)
      if (alive(port)) ports.push_back(port);
    std::ranges::sort(ports);
    // If all its ports are gone, the static route is withdrawn and the computed route stays.
    if (!ports.empty()) table_[std::size_t{g} * rows_ + row_of_[route.at.index]] = intern(ports);
  }
}

// Removes `port` from its node's set. A node that keeps another port stays at the same distance from the
// destination, so nothing else changes. A node that loses its last port is farther away now, so the nodes
// that sent to it stop, and so on up to nodes with other ports. If no host's packets begin at nodes without
// ports, nobody needs new ways there. False: somebody does, or the rule is not the plain one.
bool Routes::withdraw(std::uint32_t g, PortId port, Change& change) {
  std::vector<PortId> gone{port};
  while (!gone.empty()) {
    const auto out = gone.back();
    gone.pop_back();
    const auto node = (*network_)[out].node;
    if (row_of_[node.index] == none) continue;
    const auto at = std::size_t{g} * rows_ + row_of_[node.index];
    const auto [first, count] = sets_[table_[at]];
    const auto set = std::span(set_ports_).subspan(first, count);
    if (std::ranges::find(set, out) == set.end()) continue;
    std::vector<PortId> kept;
    std::ranges::copy_if(set, std::back_inserter(kept), [&](PortId other) { return other != out; });
    change.before.emplace_back(at, table_[at]);
    table_[at] = intern(kept);
    if (!kept.empty()) continue;
    if (network_->routing != RoutingRule::shortest || !groups_[g].statics.empty() || has_hosts_[node.index])
      return false;
    for (const auto facing : (*network_)[node].ports) gone.push_back((*network_)[facing].peer);
  }
  return true;
}

Routes::Change Routes::fail(LinkId link) {
  Change change{link, {}, {}, {}};
  dead_[link.index] = true;
  for (std::uint32_t g = 0; g < groups_.size(); ++g) {
    const auto before = change.before.size();
    if (withdraw(g, (*network_)[link].a, change) && withdraw(g, (*network_)[link].b, change)) {
      if (change.before.size() != before) change.thinned.push_back(g);
      continue;
    }
    change.refilled.push_back(g);
    for (std::uint32_t row = 0; row < rows_; ++row)
      change.before.emplace_back(std::size_t{g} * rows_ + row, table_[std::size_t{g} * rows_ + row]);
    fill(g);
  }
  return change;
}

void Routes::undo(const Change& change) {
  for (auto entry = change.before.rbegin(); entry != change.before.rend(); ++entry)
    table_[entry->first] = entry->second;
  dead_[change.failed.index] = false;
}

std::uint32_t Routes::intern(std::span<const PortId> ports) {
  if (ports.empty()) return 0;
  std::uint64_t hash = ports.size();
  for (const auto port : ports) hash = (hash ^ port.index) * 0x9E3779B97F4A7C15u;
  auto& bucket = sets_by_hash_[(hash >> 40) % hash_buckets];
  for (const auto index : bucket) {
    const auto [first, count] = sets_[index];
    if (std::ranges::equal(ports, std::span(set_ports_).subspan(first, count))) return index;
  }
  bucket.push_back(static_cast<std::uint32_t>(sets_.size()));
  sets_.push_back({static_cast<std::uint32_t>(set_ports_.size()), static_cast<std::uint32_t>(ports.size())});
  set_ports_.insert(set_ports_.end(), ports.begin(), ports.end());
  return bucket.back();
}

std::span<const PortId> Routes::transit_ports(NodeId at, std::uint32_t group) const {
  const auto row = row_of_[at.index];
  if (row == none) {  // a host with one link
    const auto& ports = (*network_)[at].ports;
    return !ports.empty() && alive(ports.front()) ? std::span(ports) : std::span<const PortId>();
  }
  const auto [first, count] = sets_[table_[std::size_t{group} * rows_ + row]];
  return std::span(set_ports_).subspan(first, count);
}

bool Routes::attached(NodeId at, std::uint32_t group) const {
  return std::ranges::binary_search(groups_[group].attached, at);
}

std::span<const PortId> Routes::next_ports(NodeId at, NodeId host) const {
  if (at == host) return {};
  const auto group = group_of_[host.index];
  if (is_host(*network_, at) || !attached(at, group)) return transit_ports(at, group);
  // A static route may override even the last hop.
  if (const auto forced = transit_ports(at, group); !forced.empty()) return forced;
  const auto [first, count] = last_hops_of_[host.index];
  const auto all = std::span(last_hops_).subspan(first, count);
  const auto [begin, end] =
      std::ranges::equal_range(all, at, {}, [&](PortId port) { return (*network_)[port].node; });
  return {begin, end};
}

RoutingLoop find_routing_loop(const Network& network, const Routes& routes) {
  enum class Mark : std::uint8_t { fresh, open, done };
  if (network.static_routes.empty()) return {};
  for (std::uint32_t g = 0; g < routes.group_count(); ++g) {
    std::vector<Mark> marks(network.nodes.size(), Mark::fresh);
    struct Step {
      NodeId node;
      std::size_t next;
    };
    for (std::uint32_t start = 0; start < network.nodes.size(); ++start) {
      if (network.nodes[start].kind != NodeKind::switch_ || marks[start] != Mark::fresh) continue;
      std::vector<Step> path{{{start}, 0}};
      marks[start] = Mark::open;
      while (!path.empty()) {
        auto& [node, next] = path.back();
        const auto ports = routes.transit_ports(node, g);
        if (next == ports.size()) {
          marks[node.index] = Mark::done;
          path.pop_back();
          continue;
        }
        const auto to = network.neighbor(ports[next++]);
        if (network[to].kind == NodeKind::host || marks[to.index] == Mark::done) continue;
        if (marks[to.index] == Mark::open) {
          RoutingLoop loop{routes.hosts_of(g).front(), {}};
          const auto from = std::ranges::find(path, to, &Step::node);
          for (auto step = from; step != path.end(); ++step) loop.nodes.push_back(step->node);
          return loop;
        }
        marks[to.index] = Mark::open;
        path.push_back({to, 0});
      }
    }
  }
  return {};
}

}  // namespace weir::fabric
