// Packets from outside: real packets of running programs (twin/), whose bytes stay with their sender. The
// simulation carries what switches look at, among the packets of simulated flows: the same queues, buffers,
// marks and pauses. It has no transport for them; their ends are programs.
//
// Their NICs' ports do what those of simulated flows do: acknowledgements and notifications leave first, then
// the queue pairs in turn, a packet each, as fast as each one's reaction point (DCQCN) lets it. What it
// reacts to are notifications among the live packets.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "fabric/sim/network_state.hpp"

namespace weir::fabric::sim {

struct LivePacket {
  std::uint32_t name = 0;                     // what the ends call it
  std::uint32_t source = 0, destination = 0;  // addresses of hosts
  std::uint16_t bytes = 0;                    // on the wire, with FCS, without the gap
  std::uint16_t hash = 0;                     // 12 bits: chooses among equal paths
  std::uint8_t priority = 3;
  bool ecn_capable = false;
  enum class Kind : std::uint8_t { data, acknowledgement, notification } kind = Kind::data;
  // Of data: the one that sends it, among those of `source`. Of a notification: the one that shall slow down,
  // among those of `destination`.
  std::uint32_t queue_pair = 0;
};

// Called inside Simulation::run_some() and send_live(); must not call the simulation.
class LiveEnds {
 public:
  // Its last bit has reached the destination. `marked`: a switch has set congestion experienced.
  virtual void arrived(Ticks at, std::uint32_t name, bool marked) = 0;
  virtual void lost(Ticks at, std::uint32_t name) = 0;
  // Its first bit leaves that port, of a host or a switch.
  virtual void leaves(Ticks /*at*/, std::uint32_t /*port*/, std::uint32_t /*name*/, bool /*marked*/) {}

 protected:
  ~LiveEnds() = default;
};

class LivePackets {
 public:
  explicit LivePackets(NetworkState& net) : net_(net) {}

  void deliver_to(LiveEnds& ends) { ends_ = &ends; }
  bool carried() const { return ends_ != nullptr; }

  // The simulated packet for it, in no queue yet.
  std::uint32_t take(const LivePacket& packet);
  // To the queue of the host's port.
  void append(std::uint32_t index, std::uint32_t port);
  // The slot of that queue pair's flow; none: it has none.
  std::uint32_t flow_of(std::uint32_t host, std::uint32_t queue_pair) const;
  std::size_t flows() const { return flows_.size(); }
  void has_flow(std::uint32_t host, std::uint32_t queue_pair, std::uint32_t slot);
  void leaves(std::uint32_t index, std::uint32_t port, Ticks at) {
    ends_->leaves(at, port, net_.packets[index].flow, net_.packets[index].marked);
  }
  // Frees the simulated packet.
  void arrived(std::uint32_t index);
  void lost(std::uint32_t index);

 private:
  NetworkState& net_;
  LiveEnds* ends_ = nullptr;
  std::unordered_map<std::uint64_t, std::uint32_t> flows_;  // by host and queue pair
};

}  // namespace weir::fabric::sim
