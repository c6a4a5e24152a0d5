// The ports that a node may use to reach a host: all shortest paths under the network's rule,
// overridden by static routes.
//
// Hosts with the same attachment and the same static routes share a group. So a table has one entry per group
// and switch, and equal sets of ports are stored once. Immutable after construction, except for fail() and
// undo(); may be read from many threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fabric/topology/network.hpp"

namespace weir::fabric {

class Routes {
 public:
  // The routes after convergence without the links in `failed`. Keeps a pointer to the network.
  explicit Routes(const Network& network, std::span<const LinkId> failed = {});

  // The ports of `at` through which a packet for `host` may leave, ordered by index; an ECMP hash
  // picks one. Empty: there is no way, or `at` is `host`. Never empty between hosts of a checked
  // network without failures.
  std::span<const PortId> next_ports(NodeId at, NodeId host) const;

  // Hosts of one group use the same ports everywhere, except at the switches to which they are attached.
  std::uint32_t group_count() const { return host_groups_; }
  // Includes, after the groups of hosts, one for each switch that a Detour leads to: for packets in a tunnel
  // to it. Such a group has no hosts.
  std::uint32_t all_group_count() const { return static_cast<std::uint32_t>(groups_.size()); }
  std::uint32_t tunnel_group(NodeId through) const;
  std::uint32_t group_of(NodeId host) const { return group_of_[host.index]; }
  std::span<const NodeId> hosts_of(std::uint32_t group) const { return groups_[group].hosts; }
  // Likewise, without the last hop: also empty if `at` is attached to the group.
  std::span<const PortId> transit_ports(NodeId at, std::uint32_t group) const;
  bool attached(NodeId at, std::uint32_t group) const;

  // Converges again after one more link between two switches has failed; the cost depends on the destinations
  // that change. A node that no packet for a destination reaches any more may be left without a way there.
  struct Change {
    LinkId failed;
    std::vector<std::uint32_t> refilled;  // groups with ways that they did not use before
    std::vector<std::uint32_t> thinned;   // groups that only lost some of their ways
    std::vector<std::pair<std::size_t, std::uint32_t>> before;
  };
  Change fail(LinkId link);
  void undo(const Change& change);  // undoes the last fail() that is not yet undone

 private:
  struct Group {
    std::vector<NodeId> hosts;
    std::vector<NodeId> attached;  // the switches, ascending
    std::vector<std::uint32_t> statics;
  };
  struct Slice {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };

  // A way from a node to a switch. Filling a table walks all of them for each group, which dominates the
  // planning time of a large network. So they are stored together and apart from other data.
  struct Way {
    PortId port;
    std::uint32_t to;  // node
    std::uint32_t link;
  };

  void find_groups();
  void find_ways();
  std::span<const Way> ways_of(std::uint32_t node) const {
    return std::span(ways_).subspan(ways_of_[node].first, ways_of_[node].count);
  }
  void fill(std::uint32_t group);
  void distances_shortest(const Group& group);
  void distances_up_down(const Group& group);
  bool is_next_hop(std::uint32_t at, std::uint32_t neighbor) const;
  std::uint32_t intern(std::span<const PortId> ports);
  bool withdraw(std::uint32_t group, PortId port, Change& change);
  bool alive(PortId port) const { return !dead_[(*network_)[port].link.index]; }
  bool alive(const Way& way) const { return !dead_[way.link]; }

  const Network* network_;
  std::vector<bool> dead_;  // by link
  std::vector<Way> ways_;
  std::vector<Slice> ways_of_;            // by node
  std::vector<std::uint32_t> tier_;       // by node
  std::vector<NodeId> switches_by_tier_;  // highest first
  std::vector<bool> has_hosts_;           // by node: packets start there
  std::vector<Group> groups_;
  std::uint32_t host_groups_ = 0;
  std::vector<std::uint32_t> group_of_;  // by node
  std::vector<std::uint32_t> row_of_;    // by node: for switches, and hosts with several links
  std::vector<std::uint32_t> table_;     // [group * rows + row]: index into sets_
  std::uint32_t rows_ = 0;
  std::vector<Slice> sets_;
  std::vector<PortId> set_ports_;
  std::vector<std::vector<std::uint32_t>> sets_by_hash_;
  std::vector<PortId> last_hops_;             // for each host, the switch ports that face it, by switch
  std::vector<Slice> last_hops_of_;           // by node
  std::vector<std::uint32_t> distance_;       // by node, for the group being filled
  std::vector<std::uint32_t> down_distance_;  // up_down only
};

// A loop that packets for some host would enter, in order; empty: there is none. Only
// static routes can make one.
struct RoutingLoop {
  NodeId host;
  std::vector<NodeId> nodes;
};
RoutingLoop find_routing_loop(const Network& network, const Routes& routes);

}  // namespace weir::fabric
