// The network between the programs' NICs: takes what a NIC gave to its port (the arena's outbox), lets the
// simulation carry it, and puts what arrives into the inbox of the process that has the queue pair.
//
// All time is passed in. Single-threaded: used by the coordinator while no program runs.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

#include "fabric/sim/random.hpp"
#include "fabric/sim/simulation.hpp"
#include "link/fabric/arena.hpp"
#include "twin/delivery_rule.hpp"
#include "twin/scenario.hpp"

namespace weir::twin {

struct LiveCounts {
  std::uint64_t sent = 0, delivered = 0, bytes = 0;  // bytes: on the wire
  std::uint64_t marked = 0;
  std::uint64_t notifications = 0;    // of congestion, that slowed a queue pair down
  std::uint64_t lost = 0;             // in the network
  std::uint64_t lost_on_purpose = 0;  // by [[loss]]; among those
  std::uint64_t nowhere = 0;          // no host has the address, or no process the queue pair
  std::uint64_t refused = 0;          // the receiver's inbox, or all slots, were full
};

class LiveNetwork final : private fabric::sim::LiveEnds {
 public:
  // The packet as it was at a host's port: for captures and fingerprints. `arriving`: at the destination.
  using Watcher = std::function<void(Ticks at, std::uint32_t host, bool arriving,
                                     const link::fabric::PacketRecord& packet)>;

  LiveNetwork(link::fabric::Arena& arena, fabric::sim::Simulation& simulation, const Scenario& scenario,
              std::vector<link::fabric::Address> addresses, std::uint64_t seed);
  LiveNetwork(const LiveNetwork&) = delete;
  LiveNetwork& operator=(const LiveNetwork&) = delete;

  void watch(Watcher watcher) { watcher_ = std::move(watcher); }
  // Every port of the network, hosts' and switches': what leaves it, and what arrives at hosts' from outside.
  using PortWatcher = std::function<void(std::uint32_t port, Ticks at,
                                         const link::fabric::PacketRecord& packet, bool marked)>;
  void watch_ports(PortWatcher watcher) { port_watcher_ = std::move(watcher); }

  // After a thread of that process has run: takes its packets, and the slots that it has read.
  void collect(std::uint32_t process);
  void process_ended(std::uint32_t process);

  // When something happens next in the network; no_time: nothing will.
  Ticks next_time();
  // What happens then, all of it or a part. True: a program was woken.
  bool advance();
  // Packets lie in the process's inbox for which it was not woken (delivery_rule.hpp).
  bool holds_back(std::uint32_t process) const { return held_back_[process]; }
  // Its thread had its turn to take them.
  void hold_back_no_more(std::uint32_t process) { held_back_[process] = false; }

  const LiveCounts& counts() const { return counts_; }

 private:
  struct Coming {  // to a port, or to an inbox
    Ticks at;
    std::uint64_t order;
    std::uint32_t slot;
    bool arriving;
    bool operator>(const Coming& other) const { return at != other.at ? at > other.at : order > other.order; }
  };
  struct InFlight {
    link::fabric::PacketRecord record;
    std::uint32_t source = 0, destination = 0;
    std::uint32_t port = 0;  // that it left last
    bool marked = false;
  };

  void arrived(Ticks at, std::uint32_t slot, bool marked) override;
  void lost(Ticks at, std::uint32_t slot) override;
  void leaves(Ticks at, std::uint32_t port, std::uint32_t slot, bool marked) override;
  bool is_lost(std::uint32_t host, Ticks at);
  std::uint32_t host_with(const link::fabric::Address& address) const;
  std::uint32_t process_with(std::uint32_t host, std::uint32_t qpn) const;
  void take(const link::fabric::PacketRecord& record, std::uint32_t slot);
  void inject(std::uint32_t slot, Ticks at);
  bool is_obeyed_by_port(std::uint32_t slot) const;
  bool deliver(std::uint32_t slot, Ticks at);
  bool may_wait(std::uint32_t process, const InFlight& packet, std::uint32_t slot);
  void provide_slots(std::uint32_t places);
  void come(Ticks at, std::uint32_t slot, bool arriving);

  link::fabric::Arena& arena_;
  fabric::sim::Simulation& simulation_;
  const Scenario& scenario_;
  std::vector<link::fabric::Address> addresses_;  // by host
  std::uint64_t seed_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::uint32_t> provided_;            // by place in the outbox
  std::vector<InFlight> in_flight_;                // by slot
  std::vector<std::deque<std::uint32_t>> unread_;  // by process: slots in its inbox
  std::vector<std::uint32_t> read_, written_;      // by process: of its inbox
  Ticks now_ = 0;
  std::vector<bool> held_back_;  // by process
  DeliveryRule rule_;
  std::uint32_t unfilled_ = 0;  // places of the outbox, of which some may have no slot
  std::priority_queue<Coming, std::vector<Coming>, std::greater<>> coming_;
  std::uint64_t order_ = 0;
  Watcher watcher_;
  PortWatcher port_watcher_;
  fabric::sim::Random losses_;
  LiveCounts counts_;
};

}  // namespace weir::twin
