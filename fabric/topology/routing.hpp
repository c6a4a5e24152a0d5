// Which ports a node may send out of to reach a host: all shortest paths under the network's rule, static
// routes over them.
//
// Hosts with the same attachment and the same static routes share a group, so a table has one row a group and
// switch, and equal sets of ports are stored once. Immutable after construction; may be read from many
// threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fabric/topology/network.hpp"

namespace weir::fabric {

class Routes {
 public:
  // As routing converges once the links in `failed` are gone. Keeps a pointer to the network.
  explicit Routes(const Network& network, std::span<const LinkId> failed = {});

  // Ports of `at` over which a packet for `host` may leave, in order of port index; an ECMP hash picks one.
  // Empty where `at` has no way to `host`, and where it is `host`. Never empty between hosts of a checked
  // network without failures.
  std::span<const PortId> next_ports(NodeId at, NodeId host) const;

  // Hosts of one group take the same ports everywhere but at the switches that they are attached to.
  std::uint32_t group_count() const { return host_groups_; }
  // Behind the groups of hosts: one for each switch that a Detour leads to, of packets in a tunnel to it. It
  // has no hosts.
  std::uint32_t all_group_count() const { return static_cast<std::uint32_t>(groups_.size()); }
  std::uint32_t tunnel_group(NodeId through) const;
  std::uint32_t group_of(NodeId host) const { return group_of_[host.index]; }
  std::span<const NodeId> hosts_of(std::uint32_t group) const { return groups_[group].hosts; }
  // The same without the last hop: empty also where `at` is attached to the group.
  std::span<const PortId> transit_ports(NodeId at, std::uint32_t group) const;
  bool attached(NodeId at, std::uint32_t group) const;

  // Converges again once a link between two switches is gone too, at the cost of the destinations that it
  // changes. A node to which no packet for a destination comes any more may be left without a way there.
  struct Change {
    LinkId failed;
    std::vector<std::uint32_t> refilled;  // groups that took ways which they did not take before
    std::vector<std::uint32_t> thinned;   // groups that only lost some of their ways
    std::vector<std::pair<std::size_t, std::uint32_t>> before;
  };
  Change fail(LinkId link);
  void undo(const Change& change);  // of the last fail() that was not undone

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

  // A way from a node to a switch. Filling a table walks all of them for each group, which is what a large
  // network's plan takes its time for: they lie together here, and by themselves.
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
  std::vector<bool> has_hosts_;           // by node: packets begin there
  std::vector<Group> groups_;
  std::uint32_t host_groups_ = 0;
  std::vector<std::uint32_t> group_of_;  // by node
  std::vector<std::uint32_t> row_of_;    // by node: switches and hosts with several links
  std::vector<std::uint32_t> table_;     // [group * rows + row]: index into sets_
  std::uint32_t rows_ = 0;
  std::vector<Slice> sets_;
  std::vector<PortId> set_ports_;
  std::vector<std::vector<std::uint32_t>> sets_by_hash_;
  std::vector<PortId> last_hops_;             // of each host, the switch ports that face it, by switch
  std::vector<Slice> last_hops_of_;           // by node
  std::vector<std::uint32_t> distance_;       // by node, of the group being filled
  std::vector<std::uint32_t> down_distance_;  // up_down only
};

// A circle that packets for some host would run in, in order, or empty where there is none. Only static
// routes make one.
struct RoutingLoop {
  NodeId host;
  std::vector<NodeId> nodes;
};
RoutingLoop find_routing_loop(const Network& network, const Routes& routes);

}  // namespace weir::fabric
