#include "fabric/plan/paths.hpp"

#include <algorithm>
#include <iterator>

namespace weir::fabric {
namespace {

constexpr double hot = 1 + 1e-9;

double one_way_ns(const Network& network, const Routes& routes, NodeId from, NodeId to) {
  double ns = 0;
  for (auto at = from; at != to;) {
    const auto ports = routes.next_ports(at, to);
    if (ports.empty()) return 0;
    if (network[at].kind == NodeKind::switch_) ns += network.model_of(network[at]).forwarding_ns;
    ns += network.outbound_delay_ns(ports.front());
    ns += network.classes.lossless_mtu_bytes * 8e9 / static_cast<double>(network.speed_bps(ports.front()));
    at = network.neighbor(ports.front());
  }
  return ns;
}

// Spreads each group's traffic along its routes; each node follows all nodes that send to it.
class Spreading {
 public:
  Spreading(const Network& network, const Routes& routes)
      : network_(network),
        routes_(routes),
        load_bps_(network.ports.size()),
        inflow_(network.nodes.size()),
        from_hosts_bps_(network.nodes.size()),
        waiting_for_(network.nodes.size()) {
    for (std::uint32_t n = 0; n < network.nodes.size(); ++n) {
      const auto& node = network.nodes[n];
      if (node.kind == NodeKind::switch_) {
        switches_.push_back({n});
        continue;
      }
      offered_bps_ += host_bps(node);
      for (const auto port : node.ports)
        from_hosts_bps_[network.neighbor(port).index] += static_cast<double>(network.speed_bps(port));
    }
  }

  const std::vector<double>& run() {
    for (std::uint32_t g = 0; g < routes_.group_count(); ++g) spread(g);
    return load_bps_;
  }

 private:
  double host_bps(const Node& host) const {
    double bps = 0;
    for (const auto port : host.ports) bps += static_cast<double>(network_.speed_bps(port));
    return bps;
  }

  void spread(std::uint32_t group) {
    double taken = 0;  // the share of all traffic that goes to this group
    for (const auto host : routes_.hosts_of(group)) taken += host_bps(network_[host]);
    const double share = taken / offered_bps_;
    std::ranges::fill(inflow_, 0.0);
    std::ranges::fill(waiting_for_, 0u);
    for (const auto node : switches_) {
      inflow_[node.index] = from_hosts_bps_[node.index] * share;
      for (const auto port : routes_.transit_ports(node, group))
        ++waiting_for_[network_.neighbor(port).index];
    }
    std::vector<NodeId> queue;
    std::ranges::copy_if(switches_, std::back_inserter(queue),
                         [this](NodeId node) { return waiting_for_[node.index] == 0; });
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const auto ports = routes_.transit_ports(queue[i], group);
      for (const auto port : ports) {
        const auto next = network_.neighbor(port);
        const auto part = inflow_[queue[i].index] / static_cast<double>(ports.size());
        load_bps_[port.index] += part;
        inflow_[next.index] += part;
        if (--waiting_for_[next.index] == 0) queue.push_back(next);
      }
    }
  }

  const Network& network_;
  const Routes& routes_;
  std::vector<NodeId> switches_;
  std::vector<double> load_bps_;        // by port
  std::vector<double> inflow_;          // by node, for the current group
  std::vector<double> from_hosts_bps_;  // by node: what its hosts send in total
  std::vector<std::uint32_t> waiting_for_;
  double offered_bps_ = 0;
};

}  // namespace

double longest_rtt_ns(const Network& network, const Routes& routes) {
  double longest = 0;
  if (routes.group_count() == 0) return 0;
  const auto from = routes.hosts_of(0).front();
  for (std::uint32_t g = 0; g < routes.group_count(); ++g) {
    const auto to = routes.hosts_of(g).back();
    longest =
        std::max(longest, one_way_ns(network, routes, from, to) + one_way_ns(network, routes, to, from));
  }
  return longest;
}

std::vector<LinkLoad> hot_links(const Network& network, const Routes& routes) {
  Spreading spreading(network, routes);
  const auto& load = spreading.run();
  std::vector<LinkLoad> out;
  for (std::uint32_t p = 0; p < network.ports.size(); ++p) {
    const double share = load[p] / static_cast<double>(network.speed_bps({p}));
    if (share > hot) out.push_back({{p}, share});
  }
  std::ranges::stable_sort(out, std::greater{}, &LinkLoad::share);
  return out;
}

}  // namespace weir::fabric
