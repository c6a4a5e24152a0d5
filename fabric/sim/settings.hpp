// What is simulated: nodes, ports, buffers, hosts' transport, flows and faults, as plain data. Indices into
// the vectors are the names inside the simulator; scenario.hpp makes this from files, tests make it by hand
// (tests/sim/small_fabrics.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fabric/sim/ticks.hpp"
#include "rnic/congestion/dcqcn.hpp"

namespace weir::fabric::sim {

constexpr unsigned priorities = 8;
constexpr std::uint32_t none = ~std::uint32_t{0};

// RED on the egress queue's bytes before the packet: nothing below kmin, everything from kmax, up to pmax in
// between.
struct Wred {
  std::uint32_t kmin_bytes = 0;
  std::uint32_t kmax_bytes = 0;  // 0: no marking
  double pmax = 0;
};

// One priority of a switch: its ingress priority group and its egress queue.
struct PrioritySettings {
  bool lossless = false;
  bool strict = false;                 // strict priority, before all that are weighted
  std::uint32_t weight = 1;            // DWRR
  double alpha = 1;                    // dynamic threshold of the ingress priority group
  double egress_alpha = 8;             // of the egress queue, where it is lossy
  std::uint32_t xon_bytes = 0;         // XON at or below this usage of shared buffer, or
  std::uint32_t xon_offset_bytes = 0;  // at or below the threshold less this
  Wred wred;
};

struct SwitchSettings {
  std::uint32_t cell_bytes = 1;
  std::uint64_t shared_bytes = 0;         // the pool that the dynamic thresholds divide
  std::uint64_t headroom_pool_bytes = 0;  // 0: each port's headroom is its own; else all share this
  std::uint32_t pause_quanta = 65535;
  std::array<PrioritySettings, priorities> priority;
};

struct Node {
  std::string name;
  bool host = false;
  std::uint32_t settings = none;  // of a switch: index into Fabric::switches
};

// Each end of a cable is a port. Two ports are each other's peer.
struct PortSettings {
  std::uint32_t node = none;
  std::uint32_t peer = none;
  std::string name;
  double gbps = 100;
  Ticks delay = 0;           // of the cable
  Ticks pipeline = 0;        // of the node of this port: from the last bit's arrival to the MMU
  Ticks pause_response = 0;  // from a PFC frame's arrival at this port until it obeys
  std::array<std::uint32_t, priorities> headroom_bytes{};
  std::array<std::uint32_t, priorities> guaranteed_bytes{};  // private part of each ingress priority group
  // Where a port's speed asks for marks other than the switch's.
  std::array<Wred, priorities> wred{};
  bool own_wred = false;
};

// Where a packet goes: for each switch, and host with several ports, and each host the ports that are equally
// near.
struct RouteTable {
  std::uint32_t hosts = 0;
  std::vector<std::uint32_t> row;    // by node: which row of `group` is its; hosts with one port have none
  std::vector<std::uint32_t> group;  // row * hosts + address: index into `first` and `count`
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> count;  // 0: unreachable
  std::vector<std::uint32_t> ports;
};

struct Fabric {
  std::vector<Node> nodes;
  std::vector<PortSettings> ports;
  std::vector<SwitchSettings> switches;
  // Nodes that are hosts; a host's index here is its address, whichever port it is reached at.
  std::vector<std::uint32_t> hosts;
  RouteTable routes;
};

// RC queue pairs and the hosts' NICs.
struct Transport {
  std::uint32_t mtu_bytes = 1024;
  std::uint32_t header_bytes = 62;  // Ethernet, IPv4, UDP, BTH, ICRC, FCS
  std::uint32_t ack_bytes = 66;
  std::uint32_t cnp_bytes = 78;
  std::uint32_t pfc_bytes = 64;
  std::uint32_t gap_bytes = 20;    // preamble and interpacket gap, after every frame
  std::uint32_t ack_every = 16;    // packets; the last of a flow is always acknowledged
  std::uint64_t window_bytes = 0;  // in flight for each flow; 0: as many as the rate lets out
  Ticks retransmission_timeout = 4 * ticks_per_ms;
  std::uint8_t control_priority = 6;  // ACK, NAK, CNP
  bool dcqcn = true;
  rnic::congestion::DcqcnParameters dcqcn_parameters;  // times in ticks
};

struct FlowSpec {
  std::uint64_t bytes = 0;
  Ticks start = 0;  // no_time: when the flow that names this one as its `then` has arrived
  std::uint32_t source = 0, destination = 0;  // addresses of hosts
  std::uint32_t then = none;
  std::uint16_t workload = 0;
  std::uint8_t priority = 3;
};

// Flows of one workload that are one operation to their users.
struct Collective {
  std::string name;
  std::string kind;
  std::uint16_t workload = 0;
  std::uint32_t hosts = 0;
  std::uint64_t bytes = 0;  // of each host
  double bus_factor = 1;    // from bytes over time to what each link carried
};

struct Fault {
  Ticks time = 0;
  std::uint32_t port = none;  // either end of the cable
  bool up = false;
  std::shared_ptr<const RouteTable> routes;  // in force from then on; null: unchanged
};

// A host that sends XOFF without end.
struct Storm {
  Ticks start = 0, end = 0;
  std::uint32_t host = 0;
  std::uint8_t priority = 3;
};

enum class WatchdogAction : std::uint8_t { alert, drop, forward };

struct Watchdog {
  bool on = false;
  WatchdogAction action = WatchdogAction::drop;
  Ticks poll = 200 * ticks_per_ms;
  Ticks detection = 200 * ticks_per_ms;
  Ticks restoration = 200 * ticks_per_ms;
};

struct Experiment {
  std::uint64_t seed = 1;
  Ticks duration = 10 * ticks_per_ms;  // at most longest_run_ns
  Ticks sample_interval = 0;           // of the series, until they are full; 0: no series
  std::size_t most_samples = 2000;     // moments in the series; when they are full, every other one goes
  Ticks counter_interval = 0;          // how often somebody who watches the run wants its counters
  Ticks deadlock_check = ticks_per_ms;
  Transport transport;
  Watchdog watchdog;
  std::vector<FlowSpec> flows;
  std::vector<Collective> collectives;
  std::vector<Fault> faults;
  std::vector<Storm> storms;
};

}  // namespace weir::fabric::sim
