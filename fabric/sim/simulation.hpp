// One simulation run: the state of a network and the loop that moves its events.
//
// Where to start reading: receive() and transmit() in simulation.cpp handle every packet; host.cpp has the
// two ends of a flow; live/live_host.cpp has the ports of running programs; faults.cpp has what goes wrong.
// Parts with their own state are pausing (Pfc), the watchdog, the check for deadlocks, and the samples; all
// of them go by NetworkState. All of it is a function of (Fabric, Experiment): no clock, no randomness except
// the seed, no I/O, one thread. Runs share only the Fabric.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fabric/sim/deadlock.hpp"
#include "fabric/sim/flow.hpp"
#include "fabric/sim/flow_order.hpp"
#include "fabric/sim/live/live_packets.hpp"
#include "fabric/sim/network_state.hpp"
#include "fabric/sim/pfc.hpp"
#include "fabric/sim/samples.hpp"
#include "fabric/sim/settings.hpp"
#include "fabric/sim/watchdog.hpp"

namespace weir::fabric::sim {

class Simulation final : private PfcHost, private PfcWatchdogHost {
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

  // Packets from outside (live/live_packets.hpp) go to `ends`, which outlives this object. The run then goes
  // on after its flows have arrived. Call it before the first event.
  void carry(LiveEnds& ends) {
    live_.deliver_to(ends);
    samples_.watch_all_priorities();
  }
  // The packet joins its host's queue at `at`, no earlier than now() and no later than next_time().
  void send_live(const LivePacket& packet, Ticks at);
  // Of the next event; no_time: nothing will happen any more. Samples are taken only while packets move.
  Ticks next_time();

  Ticks now() const { return net_.now; }
  const Fabric& fabric() const { return net_.fabric; }
  const Experiment& experiment() const { return net_.run; }
  const Totals& totals() const { return net_.totals; }
  std::span<const FlowResult> results() const { return results_; }
  std::span<const Incident> incidents() const { return net_.incidents; }
  const Series& series() const { return samples_.series(); }
  const PriorityGroup& group(std::uint32_t port, unsigned priority) const {
    return net_.groups[at(port, priority)];
  }
  const Queue& queue(std::uint32_t port, unsigned priority) const { return net_.queues[at(port, priority)]; }
  const PfcCounters& pfc(std::uint32_t port, unsigned priority) const { return net_.pfc[at(port, priority)]; }
  const SharedPool& pool(std::uint32_t node) const { return net_.pools[node]; }
  Ticks paused_time(std::uint32_t port, unsigned priority) const { return pfc_.paused_time(port, priority); }

 private:
  static std::size_t at(std::uint32_t port, unsigned priority) { return NetworkState::at(port, priority); }

  struct Nic {  // a host has one per link
    std::uint32_t port = none;
    double line_rate = 0;      // of the port, bit/s
    std::uint32_t window = 0;  // packets in flight for each flow; 0: no limit
    std::uint8_t waiting = 0;  // one bit for each priority with ready flows
    std::uint8_t turn = 0;
    std::array<std::uint32_t, priorities> ready_head;
    std::array<std::uint32_t, priorities> ready_tail;
    std::vector<std::pair<Ticks, std::uint32_t>> paced;  // min-heap of (when, flow slot)
  };

  static std::uint32_t arrival_source(std::uint32_t port) { return port * 2; }
  static std::uint32_t transmit_source(std::uint32_t port) { return port * 2 + 1; }

  // simulation.cpp: switches
  void build_ports();
  void receive(std::uint32_t out);
  void receive_at_switch(std::uint32_t in, std::uint32_t node, std::uint32_t index);
  void prefetch_ahead();
  void mark(Queue& queue, std::uint32_t out, Packet& packet);
  void read_link(std::uint32_t port, std::uint32_t packet);
  void transmit_event(std::uint32_t port);
  Ticks transmit(std::uint32_t port);
  void forward(std::uint32_t port, unsigned ready);
  void put_on_wire(Port& port, std::uint32_t port_index, std::uint32_t index);
  void want_transmit(std::uint32_t port, Ticks when);
  void kick(std::uint32_t port) override;
  std::uint32_t next_hop(std::uint32_t node, const Packet& packet) const;
  void find_path(Path& path, const Packet& packet, std::uint32_t from_port);
  void discard(std::uint32_t index);
  void rare(const RareEvent& event);

  // host.cpp
  void start_due_flows();
  void start_flow(std::uint32_t id);
  void start_followers(std::uint32_t of);
  std::uint32_t choose_nic(const Flow& flow) const;
  std::uint32_t arrival_port(const Flow& flow, std::uint32_t from_port) const;
  Ticks ideal_time(const FlowSpec& flow, std::uint32_t hash, std::uint32_t from_port) const;
  Ticks transmit_from_host(std::uint32_t port);
  void send_packet(std::uint32_t port, Nic& nic, std::uint32_t slot);
  void append_ready(Nic& nic, std::uint32_t slot);
  void make_ready(std::uint32_t slot);
  std::uint32_t window_packets(double line_rate) const;
  bool window_open(const Flow& flow, const Nic& nic) const;
  void release_paced(Nic& nic);
  void receive_at_host(std::uint32_t port, std::uint32_t index);
  void receive_data(std::uint32_t port, std::uint32_t slot, const Packet& packet);
  void receive_control(std::uint32_t slot, const Packet& packet);
  void send_control(std::uint32_t port, std::uint32_t slot, PacketKind kind, std::uint32_t psn,
                    bool marked = false);
  void update_rate(std::uint32_t slot, const Packet& packet);
  void packet_gone(std::uint32_t slot);
  void free_if_over(std::uint32_t slot);
  void retransmission_timer(std::uint32_t slot, std::uint32_t id);
  void slow_down_by_notification(Flow& flow);
  void advance_rate(Flow& flow, std::uint64_t frame, double line_rate);
  void pace(Nic& nic, std::uint32_t slot, Ticks until);

  void take_sample();

  // live/live_host.cpp
  std::uint32_t live_flow(const LivePacket& packet);
  void send_live_data(const LivePacket& packet, std::uint32_t index, std::uint32_t slot);
  void send_live_packet(std::uint32_t port, Nic& nic, std::uint32_t slot);
  std::uint32_t payload_of(const Flow& flow, std::uint32_t packet) const {
    return packet + 1 == flow.packets ? flow.last_bytes : net_.run.transport.mtu_bytes;
  }

  // faults.cpp
  void start_faults();
  void fault(const Fault& fault);
  void cut(std::uint32_t port);
  bool leads_there(const Flow& flow) const;
  void leave_lost_nics();
  void storm(std::uint32_t index);
  void drop_queue(std::uint32_t port, unsigned priority) override;

  NetworkState net_;
  Pfc pfc_{net_, *this};
  PfcWatchdog watchdog_{net_, pfc_, *this};
  DeadlockCheck deadlocks_{net_};
  Samples samples_{net_};
  bool sample_ordered_ = false;
  LivePackets live_{net_};
  std::vector<Nic> nics_;
  std::vector<std::vector<std::uint32_t>> nics_of_;  // by address
  std::vector<Flow> flows_;                          // slots
  // By slot, where acknowledgements set the rate. Not in Flow, which DCQCN keeps small.
  std::vector<rnic::congestion::AcknowledgedRate> acknowledged_rates_;
  PathReport arriving_;      // of the packet that a host handles
  std::vector<Path> paths_;  // two per slot: for its data and for responses; if the routes stay
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::uint32_t> start_order_;  // flow ids by start
  std::size_t started_ = 0;
  FlowOrder order_{net_.run};
  Ticks next_start_ = no_time;
  std::size_t alive_ = 0;
  std::vector<FlowResult> results_;
  std::shared_ptr<const RouteTable> changed_routes_;
};

}  // namespace weir::fabric::sim
