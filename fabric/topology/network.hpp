// A network for the planner and the simulator: nodes, their ports, the links between
// ports, and which traffic is lossless. Nodes, ports, links and models are named by
// their index in the Network.
// Invariants of a Network that read_network returned without complaint: every link joins ports of two nodes;
// every port has exactly one link; names of nodes are unique, and so are those of a node's ports; every host
// reaches every other; static routes have no loop. Plain data, may be read from many threads.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/topology/switch_model.hpp"

namespace weir::fabric {

template <class Tag>
struct Id {
  std::uint32_t index = 0;
  auto operator<=>(const Id&) const = default;
};
using NodeId = Id<struct NodeTag>;
using PortId = Id<struct PortTag>;
using LinkId = Id<struct LinkTag>;

enum class NodeKind { host, switch_ };
enum class CableKind { copper, fibre, active_optical };

// 5 ns per metre of fibre, and about the same of twinaxial copper; sources differ in the third digit.
inline constexpr double default_ns_per_m = 5;

struct Cable {
  double length_m = 0;
  // The strand from b to a, which a patch panel can make longer.
  double return_length_m = 0;
  CableKind kind = CableKind::fibre;
  double ns_per_m = default_ns_per_m;
};

struct Port {
  std::string name;  // the switch software's name: Ethernet0
  NodeId node;
  LinkId link;
  PortId peer;
  std::uint32_t lanes = 0;  // of the switch's port; 0: unknown
  bool on_front = true;     // false: the switch's model has no such port, or none left of its speed
};

struct Link {
  PortId a, b;
  std::uint64_t speed_bps = 0;  // in each direction
  Cable cable;
  Place place;
};

struct Node {
  std::string name;
  NodeKind kind = NodeKind::host;
  std::uint32_t tier = 0;   // hosts 0, leaves 1, spines 2...; valid if Network::tiered
  std::uint32_t model = 0;  // on a switch: index into Network::models
  std::vector<PortId> ports;
  Place place;
  std::uint64_t next_lane = 0;  // lane after those of all its ports: number of the next unnamed port
};

struct StaticRoute {
  NodeId at;                // this switch
  std::vector<NodeId> to;   // sends packets for these hosts
  std::vector<PortId> via;  // through one of these ports, by hash
  Place place;
};

// A switch that could reach certain hosts but is not in charge of them tunnels their packets to the switch
// that is: the standby of a dual-ToR pair. The tunnel is routed, so packets may turn up again.
struct Detour {
  NodeId at;               // packets that reach this switch
  std::vector<NodeId> to;  // for these hosts
  NodeId through;          // continue to this switch
  // In lossless priorities that only tunnelled packets have, and therefore in separate buffers.
  bool remapped = false;
  Place place;
};

enum class RoutingRule {
  shortest,  // all shortest paths
  up_down,   // all shortest paths that never go up again after going down (valley-free)
};

inline constexpr std::size_t priorities = 8;
inline constexpr std::size_t dscps = 64;

// The defaults of SONiC's switches (sonic-buildimage, qos_config.j2): DSCP 3 and 4 are lossless traffic, 5 is
// scavenger, 8 is background, 46 (EF) and 48 (CS6) have their own queues, and the rest is best effort.
inline constexpr auto sonic_dscp_to_priority = [] {
  std::array<std::uint8_t, dscps> map{};
  map.fill(1);
  map[3] = 3;
  map[4] = 4;
  map[5] = 2;
  map[8] = 0;
  map[46] = 5;
  map[48] = 6;
  return map;
}();

struct TrafficClasses {
  std::vector<std::uint8_t> lossless{3, 4};  // priorities with PFC, ascending
  std::array<std::uint8_t, dscps> dscp_to_priority = sonic_dscp_to_priority;
  std::uint32_t mtu_bytes = 9216;           // largest frame on any port, which may block a PFC frame
  std::uint32_t lossless_mtu_bytes = 1024;  // largest frame of the lossless classes
  double small_packet_percentage = 100;     // of lossless packets: SONiC's LOSSLESS_TRAFFIC_PATTERN
  std::uint32_t smallest_packet_bytes = 64;
  std::vector<std::uint8_t> strict;  // priorities served before all others; the others share by weight
  bool is_lossless(std::size_t priority) const;
};

// What the user expects of the traffic. The planner places marks for it, and says when they would not hold.
struct TrafficHints {
  std::uint32_t incast = 8;            // senders to one port at the same time
  std::uint32_t congested_queues = 8;  // simultaneously congested priority groups of a switch
  std::uint32_t spread = 1;            // congested egress ports that one ingress port feeds at the same time
  std::optional<double> rtt_ns;        // unloaded; absent: that of the longest path
};

// The user's decisions that override the planner's.
struct PlanOverrides {
  std::string sonic_release = "202605";  // whose headroom formula is used: fabric/plan/headroom.hpp
  std::optional<int> dynamic_th;         // alpha = 2^dynamic_th
  std::optional<double> kmin_bytes, kmax_bytes, pmax;
  std::optional<double> xon_offset_bytes;
  std::optional<double> xoff_bytes;           // headroom of each lossless priority group
  std::optional<double> headroom_pool_bytes;  // that all ports of a switch share
  bool sonic_headroom_only = false;           // otherwise the larger of SONiC's formula and first principles
  double free_share = 0.1;  // of the shared pool, with TrafficHints::congested_queues congested
  std::optional<std::uint32_t> watchdog_detection_ms, watchdog_restoration_ms, watchdog_poll_ms;
  std::string watchdog_action = "drop";
  std::string
      pfc_stat_history;  // "enable", "disable"; "": as the switch has it, which older releases require
  Place place;
};

struct Network {
  std::string name;
  std::string generator;  // "leaf-spine", "fat-tree"; empty: written by hand
  std::vector<SwitchModel> models;
  std::vector<Node> nodes;  // hosts and switches
  std::vector<Port> ports;
  std::vector<Link> links;
  std::vector<StaticRoute> static_routes;
  std::vector<Detour> detours;
  RoutingRule routing = RoutingRule::shortest;
  bool tiered = false;
  TrafficClasses classes;
  TrafficHints hints;
  PlanOverrides overrides;

  const Node& operator[](NodeId id) const { return nodes[id.index]; }
  const Port& operator[](PortId id) const { return ports[id.index]; }
  const Link& operator[](LinkId id) const { return links[id.index]; }
  const SwitchModel& model_of(const Node& node) const { return models[node.model]; }
  std::optional<NodeId> find(std::string_view node) const;
  std::optional<PortId> find_port(NodeId node, std::string_view port) const;

  // The port's link, as seen from the port.
  NodeId neighbor(PortId port) const { return ports[ports[port.index].peer.index].node; }
  std::uint64_t speed_bps(PortId port) const { return links[ports[port.index].link.index].speed_bps; }
  double outbound_delay_ns(PortId port) const;  // propagation from this port to its peer

  NodeId add_node(Node node);
  // Makes a port on each node and joins them. An empty name becomes EthernetN, where N counts lanes of 25
  // Gb/s; on a switch whose model knows its ports it stays empty until name_ports.
  LinkId add_link(NodeId a, std::string a_name, NodeId b, std::string b_name, std::uint64_t speed_bps,
                  Cable cable, Place place);
};

}  // namespace weir::fabric
