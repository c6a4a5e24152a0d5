#include "fabric/plan/deadlock.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

namespace weir::fabric {
namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t word_bits = 64;

// The vertices, which do not depend on routes: one layer for all traffic, and another for packets in tunnels
// if these have their own priorities.
struct Buffers {
  explicit Buffers(const Network& network)
      : of_port(network.ports.size(), none), out_of(network.nodes.size()) {
    add_layer(network);
    layer_size = static_cast<std::uint32_t>(ports.size());
    if (std::ranges::any_of(network.detours, &Detour::remapped)) add_layer(network);
  }
  void add_layer(const Network& network) {
    for (std::uint32_t p = 0; p < network.ports.size(); ++p) {
      const auto& port = network.ports[p];
      if (network[port.node].kind != NodeKind::switch_ ||
          network[network.neighbor({p})].kind != NodeKind::switch_)
        continue;
      const auto vertex = static_cast<std::uint32_t>(ports.size());
      if (of_port[p] == none) of_port[p] = vertex;
      ports.push_back({p});
      out_of[port.node.index].push_back(vertex);
      head.push_back(network.neighbor({p}).index);
    }
  }
  std::vector<PortId> ports;                       // by vertex
  std::vector<std::uint32_t> head;                 // by vertex: the node that has the buffer
  std::vector<std::uint32_t> of_port;              // by port: its vertex in the first layer
  std::vector<std::vector<std::uint32_t>> out_of;  // by node: the vertices that it fills at its neighbors
  std::uint32_t layer_size = 0;
};

// For each vertex, the groups of hosts whose packets cross it.
class Usage {
 public:
  Usage(const Network& network, const Buffers& buffers, const Routes& routes)
      : buffers_(buffers),
        host_groups_(routes.group_count()),
        words_((routes.all_group_count() + word_bits - 1) / word_bits),
        bits_(buffers.ports.size() * words_),
        visited_(network.nodes.size()) {
    for (const auto& node : network.nodes) {
      if (node.kind != NodeKind::host) continue;
      for (const auto port : node.ports) sources_.push_back(network.neighbor(port));
    }
    std::ranges::sort(sources_);
    sources_.erase(std::ranges::unique(sources_).begin(), sources_.end());
    tunnel_sources_.resize(routes.all_group_count() - host_groups_);
    remapped_.assign(tunnel_sources_.size(), true);
    for (const auto& detour : network.detours) {
      const auto tunnel = routes.tunnel_group(detour.through);
      tunnel_sources_[tunnel - host_groups_].push_back(detour.at);
      if (!detour.remapped) remapped_[tunnel - host_groups_] = false;
      for (const auto host : detour.to) {
        const auto group = routes.group_of(host);
        turns_.push_back({detour.at.index, group, tunnel});
        turns_.push_back({detour.through.index, tunnel, group});
      }
    }
  }

  // Follows packets for the group from every switch with hosts; packets in a tunnel, from its start.
  void follow(const Routes& routes, std::uint32_t group, std::vector<std::uint32_t>* crossed = nullptr) {
    visited_.assign(visited_.size(), false);
    std::vector<NodeId> queue = group < host_groups_ ? sources_ : tunnel_sources_[group - host_groups_];
    const auto layer = group >= host_groups_ && remapped_[group - host_groups_] ? buffers_.layer_size : 0;
    for (const auto node : queue) visited_[node.index] = true;
    for (std::size_t i = 0; i < queue.size(); ++i)
      for (const auto port : routes.transit_ports(queue[i], group)) {
        if (buffers_.of_port[port.index] == none) continue;
        const auto vertex = buffers_.of_port[port.index] + layer;
        bits_[vertex * words_ + group / word_bits] |= std::uint64_t{1} << group % word_bits;
        if (crossed) crossed->push_back(vertex);
        const NodeId next{buffers_.head[vertex]};
        if (!visited_[next.index]) queue.push_back(next);
        visited_[next.index] = true;
      }
  }

  // A group whose packets go from buffer p to buffer q; or none.
  std::uint32_t shared_group(std::uint32_t p, std::uint32_t q) const {
    for (std::size_t w = 0; w < words_; ++w)
      if (const auto both = bits_[p * words_ + w] & bits_[q * words_ + w])
        return static_cast<std::uint32_t>(w * word_bits) + static_cast<std::uint32_t>(__builtin_ctzll(both));
    for (const auto& turn : turns_)
      if (buffers_.head[p] == turn.at && has(p, turn.in) && has(q, turn.out)) return turn.in;
    return none;
  }
  void forget(std::span<const std::uint32_t> crossed) {
    for (const auto vertex : crossed)
      std::fill_n(bits_.begin() + static_cast<std::ptrdiff_t>(vertex * words_), words_, 0);
  }
  void forget_groups(std::span<const std::uint32_t> groups) {
    std::vector<std::uint64_t> kept(words_, ~std::uint64_t{0});
    for (const auto group : groups) kept[group / word_bits] &= ~(std::uint64_t{1} << group % word_bits);
    for (std::size_t i = 0; i < bits_.size(); ++i) bits_[i] &= kept[i % words_];
  }

 private:
  // At this node packets of one group change to another one: they enter a tunnel or leave it.
  struct Turn {
    std::uint32_t at, in, out;
  };
  bool has(std::uint32_t vertex, std::uint32_t group) const {
    return bits_[vertex * words_ + group / word_bits] >> group % word_bits & 1;
  }

  const Buffers& buffers_;
  std::uint32_t host_groups_;
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
  std::vector<bool> visited_;
  std::vector<NodeId> sources_;
  std::vector<std::vector<NodeId>> tunnel_sources_;  // by group, after the groups of hosts
  std::vector<bool> remapped_;                       // likewise: all detours to its switch are remapped
  std::vector<Turn> turns_;
};

using Graph = std::vector<std::vector<std::uint32_t>>;

Graph dependencies(const Buffers& buffers, const Usage& usage) {
  Graph graph(buffers.ports.size());
  for (std::uint32_t p = 0; p < graph.size(); ++p)
    for (const auto q : buffers.out_of[buffers.head[p]])
      if (usage.shared_group(p, q) != none) graph[p].push_back(q);
  return graph;
}

// Tarjan's strongly connected components, without recursion. They are found in reverse
// topological order, so their numbers are an order: every edge between two components goes from
// the higher number to the lower.
struct Components {
  explicit Components(const Graph& graph)
      : of(graph.size(), none), index(graph.size(), none), low(graph.size()) {
    for (std::uint32_t start = 0; start < graph.size(); ++start)
      if (index[start] == none) search(graph, start);
  }

  void search(const Graph& graph, std::uint32_t start) {
    struct Step {
      std::uint32_t vertex;
      std::size_t next;
    };
    std::vector<Step> path{{start, 0}};
    open(start);
    while (!path.empty()) {
      const auto [vertex, next] = path.back();
      if (next < graph[vertex].size()) {
        ++path.back().next;
        const auto to = graph[vertex][next];
        if (index[to] == none) {
          open(to);
          path.push_back({to, 0});
        } else if (of[to] == none) {
          low[vertex] = std::min(low[vertex], index[to]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) low[path.back().vertex] = std::min(low[path.back().vertex], low[vertex]);
      if (low[vertex] == index[vertex]) close(vertex);
    }
  }

  void open(std::uint32_t vertex) {
    index[vertex] = low[vertex] = count++;
    stack.push_back(vertex);
  }

  void close(std::uint32_t vertex) {
    members.emplace_back();
    for (std::uint32_t top = none; top != vertex;) {
      top = stack.back();
      stack.pop_back();
      of[top] = static_cast<std::uint32_t>(members.size() - 1);
      members.back().push_back(top);
    }
  }

  std::vector<std::uint32_t> of;                    // by vertex
  std::vector<std::vector<std::uint32_t>> members;  // by component

 private:
  std::vector<std::uint32_t> index, low, stack;
  std::uint32_t count = 0;
};

// The shortest cycle through the lowest member, found breadth first inside the component.
std::vector<std::uint32_t> cycle_in(const Graph& graph, const Components& components,
                                    std::uint32_t component) {
  const auto start = std::ranges::min(components.members[component]);
  std::vector<std::uint32_t> from(graph.size(), none), queue{start};
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (const auto to : graph[queue[i]]) {
      if (components.of[to] != component) continue;
      if (to == start) {
        std::vector<std::uint32_t> cycle;
        for (auto at = queue[i]; at != start; at = from[at]) cycle.push_back(at);
        cycle.push_back(start);
        std::ranges::reverse(cycle);
        return cycle;
      }
      if (from[to] == none) {
        from[to] = queue[i];
        queue.push_back(to);
      }
    }
  return {};
}

class Search {
 public:
  explicit Search(const Network& network)
      : network_(network),
        buffers_(network),
        routes_(network),
        usage_(network, buffers_, routes_),
        fresh_(usage_) {
    for (std::uint32_t g = 0; g < routes_.all_group_count(); ++g) usage_.follow(routes_, g);
    graph_ = dependencies(buffers_, usage_);
  }

  DeadlockReport run(FailureScope scope) {
    DeadlockReport report;
    const Components components(graph_);
    report.cycles = cycles(graph_, components, usage_);
    if (scope == FailureScope::none || !report.cycles.empty()) return report;
    order(components);
    // Routes that never turn up again follow this order whatever fails: they cannot close a cycle.
    const bool proven = order_is_of_tiers_ && network_.routing == RoutingRule::up_down &&
                        network_.static_routes.empty() && network_.detours.empty();
    for (std::uint32_t l = 0; l < network_.links.size(); ++l) {
      if (buffers_.of_port[network_.links[l].a.index] == none) continue;
      ++report.failures_examined;
      if (proven) continue;
      const auto change = routes_.fail({l});
      if (!change.refilled.empty() && may_close(change.refilled)) {
        auto found = exact(change);
        if (!found.empty()) {
          ++report.failures_with_cycle;
          if (report.after_failure.size() < DeadlockReport::most_failure_cycles)
            report.after_failure.push_back({{l}, std::move(found.front())});
        }
      }
      routes_.undo(change);
    }
    return report;
  }

 private:
  // Numbers that increase along every edge. If possible they are those of going up, then down, which hold for
  // every route without a valley and not only for today's routes.
  void order(const Components& components) {
    order_.resize(graph_.size());
    const auto by_tier = [this](std::uint32_t vertex) {
      const auto tail = static_cast<int>(network_[network_[buffers_.ports[vertex]].node].tier);
      const auto head = static_cast<int>(network_.nodes[buffers_.head[vertex]].tier);
      constexpr int more_than_tiers = 1000;
      return static_cast<std::uint32_t>(head > tail ? tail : 2 * more_than_tiers - tail);
    };
    for (std::uint32_t v = 0; v < graph_.size(); ++v) order_[v] = by_tier(v);
    order_is_of_tiers_ = true;
    for (std::uint32_t v = 0; v < graph_.size(); ++v)
      for (const auto to : graph_[v])
        if (order_[v] >= order_[to]) {
          order_is_of_tiers_ = false;
          const auto count = static_cast<std::uint32_t>(components.members.size());
          for (std::uint32_t u = 0; u < graph_.size(); ++u) order_[u] = count - components.of[u];
          return;
        }
  }

  // Whether adding the routes of these groups to the graph could close a cycle, which requires
  // an edge against the order.
  bool may_close(std::span<const std::uint32_t> groups) {
    std::vector<std::uint32_t> crossed;
    for (const auto group : groups) fresh_.follow(routes_, group, &crossed);
    std::ranges::sort(crossed);
    crossed.erase(std::ranges::unique(crossed).begin(), crossed.end());
    const bool against = std::ranges::any_of(crossed, [&](std::uint32_t p) {
      return std::ranges::any_of(buffers_.out_of[buffers_.head[p]], [&](std::uint32_t q) {
        return order_[p] >= order_[q] && fresh_.shared_group(p, q) != none;
      });
    });
    fresh_.forget(crossed);
    return against;
  }

  // All dependencies after the failure. Groups that it did not affect cross the same buffers as before.
  std::vector<DependencyCycle> exact(const Routes::Change& change) {
    Usage now = usage_;
    now.forget_groups(change.refilled);
    now.forget_groups(change.thinned);
    for (const auto* groups : {&change.refilled, &change.thinned})
      for (const auto group : *groups) now.follow(routes_, group);
    const auto graph = dependencies(buffers_, now);
    return cycles(graph, Components(graph), now);
  }

  std::vector<DependencyCycle> cycles(const Graph& graph, const Components& components,
                                      const Usage& usage) const {
    std::vector<DependencyCycle> out;
    for (std::uint32_t c = 0; c < components.members.size(); ++c) {
      if (components.members[c].size() < 2) continue;
      const auto vertices = cycle_in(graph, components, c);
      DependencyCycle cycle;
      for (std::size_t i = 0; i < vertices.size(); ++i) {
        const auto group = usage.shared_group(vertices[i], vertices[(i + 1) % vertices.size()]);
        const auto port = buffers_.ports[vertices[i]];
        cycle.hops.push_back({port, held_by(group)});
        cycle.text += network_[network_[port].node].name + " -> ";
      }
      cycle.text += network_[network_[cycle.hops.front().out].node].name;
      out.push_back(std::move(cycle));
    }
    return out;
  }

  // A host of the group, or the switch where its tunnel ends.
  NodeId held_by(std::uint32_t group) const {
    if (const auto hosts = routes_.hosts_of(group); !hosts.empty()) return hosts.front();
    return std::ranges::find_if(
               network_.detours,
               [&](const Detour& detour) { return routes_.tunnel_group(detour.through) == group; })
        ->through;
  }

  const Network& network_;
  Buffers buffers_;
  Routes routes_;
  Usage usage_;
  Usage fresh_;  // empty between uses
  Graph graph_;
  std::vector<std::uint32_t> order_;
  bool order_is_of_tiers_ = false;
};

}  // namespace

DeadlockReport find_deadlocks(const Network& network, FailureScope scope) {
  return Search(network).run(scope);
}

}  // namespace weir::fabric
