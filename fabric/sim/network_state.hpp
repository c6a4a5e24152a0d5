// What all parts of a run go by: the network's ports, queues and buffers, the events to come, and what was
// counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/sim/buffer.hpp"
#include "fabric/sim/event_queue.hpp"
#include "fabric/sim/packet.hpp"
#include "fabric/sim/port.hpp"
#include "fabric/sim/random.hpp"
#include "fabric/sim/settings.hpp"

namespace weir::fabric::sim {

// Something that the network's operators would want to know.
struct Incident {
  Ticks time = 0;
  enum class Kind : std::uint8_t { deadlock, storm_detected, storm_over, link_down, link_up } kind;
  std::vector<std::uint32_t> ports;  // the cycle, or the port
  std::uint8_t priority = 0;
};

struct PfcCounters {
  std::uint32_t received_xoff = 0;
  std::uint32_t received_xon = 0;
  std::uint32_t stops = 0;  // XOFFs that found the port sending
  Ticks paused = 0;         // how long the port was stopped
  Ticks paused_since = 0;   // valid while it is stopped
  Ticks until = 0;          // when the pause expires
  bool expiry_pending = false;
  bool refresh_pending = false;  // for the pauses that this port sends
};

struct Totals {
  std::uint64_t events = 0;
  std::uint64_t hops = 0;                          // packets that reached the end of a wire
  std::uint64_t delivered_bytes = 0;               // payload of simulated flows
  std::uint64_t live_packets = 0, live_bytes = 0;  // of programs, that reached their hosts, with headers
  std::uint64_t ingress_drops = 0;                 // lossless and lossy, at the priority group
  std::uint64_t lossless_drops = 0;
  std::uint64_t egress_drops = 0;
  std::uint64_t link_drops = 0;
  std::uint64_t marked = 0;
  std::uint64_t cnps = 0;
  std::uint64_t retransmitted = 0;
  std::uint64_t spurious = 0;  // of these, packets that had arrived or were still on the way
  std::uint64_t pfc_frames = 0;
  std::uint32_t finished = 0;
};

struct NetworkState {
  NetworkState(const Fabric& network, const Experiment& experiment)
      : fabric(network),
        run(experiment),
        transport(experiment.transport),
        routes(&network.routes),
        routes_stay(experiment.faults.empty()),
        mark_at(experiment.mark_at),
        events(experiment.seed),
        packets(by_acknowledgements(experiment.transport.control)),
        ports(network.ports.size()),
        queues(ports.size() * priorities),
        groups(ports.size() * priorities),
        pfc(ports.size() * priorities),
        pmax(ports.size() * priorities),
        pools(network.nodes.size()),
        random(mix(experiment.seed)) {}
  NetworkState(const NetworkState&) = delete;
  NetworkState& operator=(const NetworkState&) = delete;

  static std::size_t at(std::uint32_t port, unsigned priority) {
    return std::size_t{port} * priorities + priority;
  }

  const Fabric& fabric;
  const Experiment& run;
  Transport transport;
  const RouteTable* routes;
  // No link fails in this run: a packet's next port is determined when it leaves the previous one,
  // while it is in the cache.
  bool routes_stay;
  MarkAt mark_at;
  Ticks now = 0;
  PortEvents events;
  RareEvents rare;
  PacketPool packets;
  std::vector<Port> ports;
  std::vector<Queue> queues;          // port * 8 + priority
  std::vector<PriorityGroup> groups;  // the same
  std::vector<PfcCounters> pfc;       // the same
  std::vector<double> pmax;           // the same
  std::vector<SharedPool> pools;      // by node
  std::vector<Incident> incidents;
  Totals totals;
  Random random;
};

}  // namespace weir::fabric::sim
