// The input of a simulation: nodes, ports, buffers, the hosts' transport, flows and faults, as plain data.
// Indices into the vectors serve as names in the simulator. scenario.hpp builds this from files; tests build
// it by hand (tests/sim/small_fabrics.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fabric/sim/ticks.hpp"
#include "rnic/congestion/acknowledged_rate.hpp"
#include "rnic/congestion/dcqcn.hpp"

namespace weir::fabric::sim {

constexpr unsigned priorities = 8;
constexpr std::uint32_t none = ~std::uint32_t{0};

// RED on the bytes in the egress queue without the packet: none below kmin, all from kmax
// on, up to pmax in between.
struct Wred {
  std::uint32_t kmin_bytes = 0;
  std::uint32_t kmax_bytes = 0;  // 0: no marking
  double pmax = 0;
};

// When a packet's mark is decided. At dequeue, by the queue that it leaves behind, as in HPCC's simulator and
// in SONiC's tests of switches: the mark is news. At enqueue, by the queue that it finds: the mark then waits
// for that queue, and senders slow down so much later.
enum class MarkAt : std::uint8_t { dequeue, enqueue };

// One priority of a switch: its ingress priority group and its egress queue.
struct PrioritySettings {
  bool lossless = false;
  bool strict = false;                 // strict priority, before all weighted queues
  std::uint32_t weight = 1;            // DWRR
  double alpha = 1;                    // dynamic threshold of the ingress priority group
  double egress_alpha = 8;             // for the egress queue, if it is lossy
  std::uint32_t xon_bytes = 0;         // XON at or below this usage of the shared buffer, or
  std::uint32_t xon_offset_bytes = 0;  // at or below the threshold minus this
  Wred wred;
};

struct SwitchSettings {
  std::uint32_t cell_bytes = 1;
  std::uint64_t shared_bytes = 0;         // the pool shared by the dynamic thresholds
  std::uint64_t headroom_pool_bytes = 0;  // 0: each port has its own headroom; otherwise all share this pool
  std::uint32_t pause_quanta = 65535;
  std::array<PrioritySettings, priorities> priority;
};

struct Node {
  std::string name;
  bool host = false;
  std::uint32_t settings = none;  // on a switch: index into Fabric::switches
};

// Each end of a cable is a port. The two ports are each other's peers.
struct PortSettings {
  std::uint32_t node = none;
  std::uint32_t peer = none;
  std::string name;
  double gbps = 100;
  Ticks delay = 0;           // of the cable
  Ticks pipeline = 0;        // of this port's node: from the last bit's arrival to the MMU
  Ticks pause_response = 0;  // from the arrival of a PFC frame until the port obeys
  std::array<std::uint32_t, priorities> headroom_bytes{};
  std::array<std::uint32_t, priorities> guaranteed_bytes{};  // private part of each ingress priority group
  // If the port's speed needs other marks than the switch's.
  std::array<Wred, priorities> wred{};
  bool own_wred = false;
};

// The routes: for each switch, and each host with several ports, the equally near
// ports towards each host.
struct RouteTable {
  std::uint32_t hosts = 0;
  std::vector<std::uint32_t> row;    // by node: its row in `group`; hosts with one port have none
  std::vector<std::uint32_t> group;  // row * hosts + address: index into `first` and `count`
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> count;  // 0: unreachable
  std::vector<std::uint32_t> ports;
};

struct Fabric {
  std::vector<Node> nodes;
  std::vector<PortSettings> ports;
  std::vector<SwitchSettings> switches;
  // Nodes that are hosts. A host's index here is its address, whichever port reaches it.
  std::vector<std::uint32_t> hosts;
  RouteTable routes;
};

// What sets the rate of a flow: CNPs (DCQCN), or acknowledgements, which return the mark (DCTCP), the
// readings of the switches (HPCC) or the time (Swift) of the packet that they answer.
enum class CongestionControl : std::uint8_t { off, dcqcn, dctcp, hpcc, swift };

constexpr bool by_acknowledgements(CongestionControl control) { return control > CongestionControl::dcqcn; }

// RC queue pairs and the NICs of the hosts.
struct Transport {
  std::uint32_t mtu_bytes = 1024;
  std::uint32_t header_bytes = 62;  // Ethernet, IPv4, UDP, BTH, ICRC, FCS
  std::uint32_t ack_bytes = 66;
  std::uint32_t cnp_bytes = 78;
  std::uint32_t pfc_bytes = 64;
  std::uint32_t gap_bytes = 20;  // preamble and interpacket gap, after every frame
  // Packets. Acknowledged in any case: the last packet of a flow, one that closes the window, and, where the
  // window follows the rate, every packet.
  std::uint32_t ack_every = 16;
  // In flight for each flow: so many bytes, or what its NIC sends in that time at line rate; 0: as much as
  // the rate allows. If both are given, the smaller.
  std::uint64_t window_bytes = 0;
  Ticks window_time = 0;
  bool window_by_rate = false;  // in proportion to the flow's rate (VAR_WIN of HPCC's simulator)
  Ticks retransmission_timeout = (Ticks{4096} << 14) * ticks_per_ns;  // InfiniBand's code 14
  std::uint8_t control_priority = 6;                                  // ACK, NAK, CNP
  CongestionControl control = CongestionControl::dcqcn;
  rnic::congestion::DcqcnParameters dcqcn_parameters;  // in ticks
  rnic::congestion::AcknowledgedRateParameters acknowledged;
  Ticks base_rtt = 10 * ticks_per_us;  // what HPCC and Swift take for a round trip without queues
};

struct FlowSpec {
  std::uint64_t bytes = 0;
  Ticks start = 0;                            // no_time: when all is over that precedes it (flow_order.hpp)
  std::uint32_t source = 0, destination = 0;  // addresses of hosts
  std::uint16_t workload = 0;
  std::uint8_t priority = 3;
};

// A time that passes between flows: what a host computes, or none, where several flows end before others
// begin.
struct Pause {
  Ticks length = 0;
  Ticks start = no_time;  // no_time: when all is over that precedes it
};

// Of two flows or pauses, the first is over when the second begins. A pause is its index with pause_bit.
constexpr std::uint32_t pause_bit = 1u << 31;
struct Precedence {
  std::uint32_t before = 0, after = 0;
};

// The flows of one workload that users see as one operation.
struct Collective {
  std::string name;
  std::string kind;
  std::uint16_t workload = 0;
  std::uint32_t hosts = 0;
  std::uint64_t bytes = 0;  // per host
  double bus_factor = 1;    // converts bytes over time to what each link carried
};

struct Fault {
  Ticks time = 0;
  std::uint32_t port = none;  // either end of the cable
  bool up = false;
  std::shared_ptr<const RouteTable> routes;  // routes from then on; null: unchanged
};

// A host that sends XOFF endlessly.
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
  Ticks sample_interval = 0;           // of the series until they are full; 0: no series
  std::size_t most_samples = 2000;     // moments in a series; when it is full, every other one is dropped
  Ticks counter_interval = 0;          // how often an observer of the run needs its counters
  Ticks deadlock_check = ticks_per_ms;
  MarkAt mark_at = MarkAt::dequeue;
  Transport transport;
  Watchdog watchdog;
  std::vector<FlowSpec> flows;
  std::vector<Pause> pauses;
  std::vector<Precedence> order;
  std::vector<Collective> collectives;
  std::vector<Fault> faults;
  std::vector<Storm> storms;
};

}  // namespace weir::fabric::sim
