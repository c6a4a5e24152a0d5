// One simulation run: the state of a network and the loop that moves its events.
//
// Where to start reading: receive() and transmit() in simulation.cpp handle every packet; host.cpp has the
// two ends of a flow; pfc.cpp has pausing; faults.cpp, watchdog.cpp and deadlock.cpp have what goes wrong.
// All of it is a function of (Fabric, Experiment): no clock, no randomness except the seed, no I/O, one
// thread. Runs share only the Fabric.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fabric/sim/buffer.hpp"
#include "fabric/sim/event_queue.hpp"
#include "fabric/sim/flow.hpp"
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

struct QueueSample {
  Ticks time;
  std::uint32_t port;
  std::uint32_t priority;
  std::uint32_t egress_bytes;
  std::uint32_t ingress_shared_bytes;
  std::uint32_t headroom_bytes;
  bool paused;
};

struct SwitchSample {
  Ticks time;
  std::uint32_t node;
  std::uint64_t shared_bytes;
  std::uint64_t headroom_bytes;
};

struct TotalSample {
  Ticks time;
  std::uint64_t delivered_bytes;  // since the start
  std::uint32_t flows_alive;
  std::uint32_t queues_paused;
};

struct Series {
  Ticks interval = 0;
  std::vector<TotalSample> totals;
  std::vector<SwitchSample> switches;  // those with a buffer in use
  std::vector<QueueSample> queues;     // those with packets, or stopped
};

struct Totals {
  std::uint64_t events = 0;
  std::uint64_t hops = 0;  // packets that reached the end of a wire
  std::uint64_t delivered_bytes = 0;
  std::uint64_t ingress_drops = 0;  // lossless and lossy, at the priority group
  std::uint64_t lossless_drops = 0;
  std::uint64_t egress_drops = 0;
  std::uint64_t link_drops = 0;
  std::uint64_t marked = 0;
  std::uint64_t cnps = 0;
  std::uint64_t retransmitted = 0;
  std::uint64_t pfc_frames = 0;
  std::uint32_t finished = 0;
};

class Simulation {
 public:
  // The caller owns `fabric` and `run`, which must outlive this object.
  Simulation(const Fabric& fabric, const Experiment& run);

  // Runs about so many more events, none later than `until`. False: the run is over (all flows have arrived,
  // or the duration is reached).
  bool run_some(std::uint64_t events, Ticks until = no_time);
  void run_all() {
    while (run_some(1u << 20)) {
    }
  }

  Ticks now() const { return now_; }
  const Fabric& fabric() const { return fabric_; }
  const Experiment& experiment() const { return run_; }
  const Totals& totals() const { return totals_; }
  std::span<const FlowResult> results() const { return results_; }
  std::span<const Incident> incidents() const { return incidents_; }
  const Series& series() const { return series_; }
  const PriorityGroup& group(std::uint32_t port, unsigned priority) const {
    return groups_[at(port, priority)];
  }
  const Queue& queue(std::uint32_t port, unsigned priority) const { return queues_[at(port, priority)]; }
  const PfcCounters& pfc(std::uint32_t port, unsigned priority) const { return pfc_[at(port, priority)]; }
  const SharedPool& pool(std::uint32_t node) const { return pools_[node]; }
  Ticks paused_time(std::uint32_t port, unsigned priority) const;

 private:
  struct Nic {  // a host has one per link
    std::uint32_t port = none;
    double line_rate = 0;      // of the port, bit/s
    std::uint8_t waiting = 0;  // one bit for each priority with ready flows
    std::uint8_t turn = 0;
    std::array<std::uint32_t, priorities> ready_head;
    std::array<std::uint32_t, priorities> ready_tail;
    std::vector<std::pair<Ticks, std::uint32_t>> paced;  // min-heap of (when, flow slot)
  };

  static std::size_t at(std::uint32_t port, unsigned priority) {
    return std::size_t{port} * priorities + priority;
  }
  static std::uint32_t arrival_source(std::uint32_t port) { return port * 2; }
  static std::uint32_t transmit_source(std::uint32_t port) { return port * 2 + 1; }

  // simulation.cpp: switches
  void build_ports();
  void receive(std::uint32_t out);
  void receive_at_switch(std::uint32_t in, std::uint32_t node, std::uint32_t index);
  void prefetch_ahead();
  void mark(Queue& queue, double pmax, Packet& packet);
  void transmit_event(std::uint32_t port);
  Ticks transmit(std::uint32_t port);
  void forward(std::uint32_t port, unsigned ready);
  void put_on_wire(Port& port, std::uint32_t port_index, std::uint32_t index);
  void want_transmit(std::uint32_t port, Ticks when);
  void kick(std::uint32_t port);
  std::uint32_t next_hop(std::uint32_t node, const Packet& packet) const;
  void find_path(Path& path, const Packet& packet, std::uint32_t from_port);
  void discard(std::uint32_t index);
  void rare(const RareEvent& event);

  // host.cpp
  void start_due_flows();
  void start_flow(std::uint32_t id);
  std::uint32_t choose_nic(const Flow& flow) const;
  std::uint32_t arrival_port(const Flow& flow, std::uint32_t from_port) const;
  Ticks ideal_time(const FlowSpec& flow, std::uint32_t hash, std::uint32_t from_port) const;
  Ticks transmit_from_host(std::uint32_t port);
  void send_packet(std::uint32_t port, Nic& nic, std::uint32_t slot);
  void append_ready(Nic& nic, std::uint32_t slot);
  void make_ready(std::uint32_t slot);
  void release_paced(Nic& nic);
  void receive_at_host(std::uint32_t port, std::uint32_t index);
  void receive_data(std::uint32_t port, std::uint32_t slot, const Packet& packet);
  void receive_control(std::uint32_t slot, const Packet& packet);
  void send_control(std::uint32_t port, std::uint32_t slot, PacketKind kind, std::uint32_t psn);
  void packet_gone(std::uint32_t slot);
  void free_if_over(std::uint32_t slot);
  void retransmission_timer(std::uint32_t slot, std::uint32_t id);
  std::uint32_t payload_of(const Flow& flow, std::uint32_t packet) const {
    return packet + 1 == flow.packets ? flow.last_bytes : run_.transport.mtu_bytes;
  }

  // pfc.cpp
  void pause_peer(std::uint32_t port, unsigned priority);
  void resume_peer(std::uint32_t port, unsigned priority);
  void send_pfc(std::uint32_t port, unsigned priority, std::uint32_t quanta);
  void pfc_arrived(std::uint32_t port, unsigned priority, std::uint32_t quanta);
  void pause_expired(std::uint32_t port, unsigned priority);
  void refresh_pause(std::uint32_t port, unsigned priority);
  void refresh_later(std::uint32_t port, unsigned priority);
  void stop(std::uint32_t port, unsigned priority);
  void go_on(std::uint32_t port, unsigned priority);
  std::uint32_t quanta_of(std::uint32_t port) const;

  // faults.cpp
  void start_faults();
  void fault(const Fault& fault);
  void cut(std::uint32_t port);
  bool leads_there(const Flow& flow) const;
  void leave_lost_nics();
  void storm(std::uint32_t index);
  void drop_queue(std::uint32_t port, unsigned priority);

  // watchdog.cpp, deadlock.cpp, samples.cpp
  struct Watched {
    std::uint64_t sent = 0;
    std::uint32_t xoff = 0;
    Ticks stuck_since = no_time;
    Ticks quiet_since = no_time;
    bool storming = false;
  };
  void watchdog_poll();
  void watch(std::uint32_t port, unsigned priority, Watched& watched);
  void check_deadlock();
  std::vector<std::uint32_t> stuck_queues();
  std::vector<std::vector<std::uint32_t>> stopped_by(std::span<const std::uint32_t> stuck) const;
  void take_sample();
  void keep_sample();
  bool sample_again(std::uint32_t held);
  void repeat_last_sample(Ticks time);

  const Fabric& fabric_;
  const Experiment& run_;
  Transport transport_;
  std::uint32_t window_packets_ = 0;
  const RouteTable* routes_;
  // No link fails in this run: a packet's next port is determined when it leaves the previous one,
  // while it is in the cache.
  bool routes_stay_;
  Ticks now_ = 0;
  PortEvents events_;
  RareEvents rare_;
  PacketPool packets_;
  std::vector<Port> ports_;
  std::vector<Queue> queues_;          // port * 8 + priority
  std::vector<PriorityGroup> groups_;  // the same
  std::vector<PfcCounters> pfc_;       // the same
  std::vector<double> pmax_;           // the same
  std::vector<SharedPool> pools_;      // by node
  std::vector<Nic> nics_;
  std::vector<std::vector<std::uint32_t>> nics_of_;  // by address
  std::vector<Flow> flows_;                          // slots
  std::vector<Path> paths_;  // two per slot: for its data and for responses; if routes_stay_
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::uint32_t> start_order_;  // flow ids by start
  std::size_t started_ = 0;
  Ticks next_start_ = no_time;
  std::size_t alive_ = 0;
  std::vector<FlowResult> results_;
  std::vector<Incident> incidents_;
  std::vector<Watched> watched_;
  std::vector<std::uint64_t> deadlock_sent_;
  bool deadlocked_ = false;
  Series series_;
  std::uint8_t used_priorities_ = 0;  // of flows, responses and storms; other queues stay empty
  std::uint64_t sampled_hops_ = 0;    // at the last kept sample
  Ticks unchanged_until_ = 0;         // time of the last sample that was dropped as unchanged; 0: none
  Totals totals_;
  Random random_;
  std::shared_ptr<const RouteTable> changed_routes_;
};

}  // namespace weir::fabric::sim
