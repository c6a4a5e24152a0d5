// Packets in one pool, named by 32-bit indices, chained into queues and wires. The data of the chains
// (successor, time of arrival) is in separate arrays. So following or extending a chain touches memory small
// enough to stay in the cache, and not the packets.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "fabric/sim/settings.hpp"
#include "rnic/congestion/hpcc.hpp"

namespace weir::fabric::sim {

enum class PacketKind : std::uint8_t { data, ack, nak, cnp, live };  // live: live/live_packets.hpp

struct Packet {
  std::uint32_t flow;  // slot; of a live packet what its sender calls it
  // psn, of a live packet: the flow that it tells to slow down, as slot + 1; 0: none.
  std::uint32_t psn : 24, priority : 3, kind : 3, marked : 1, ack_request : 1;
  std::uint32_t destination : 20, hash : 12;
  std::uint32_t ingress;  // the port of this switch where it arrived
  // The port through which it will leave the switch that it is on its way to, and how many switches it has
  // been sent to so far; see Simulation::routes_stay_.
  std::uint32_t out : 24, hop : 7, ecn_capable : 1;  // the last only of a live packet
  std::uint16_t bytes;                               // on the wire, without the gap
  std::uint16_t cells;                               // in the buffer of this switch
};
static_assert(sizeof(Packet) == 24);
constexpr unsigned data_kind = static_cast<unsigned>(PacketKind::data);
constexpr unsigned live_kind = static_cast<unsigned>(PacketKind::live);
constexpr std::uint32_t no_port = 0xffffff;  // fits into Packet::out but is no port

// The route of a flow's packets in one direction, which they all share as long as no link fails.
struct alignas(32) Path {
  static constexpr std::uint32_t most = 8;  // switches; beyond that each switch is asked
  std::array<std::uint32_t, most> ports;    // for each switch the port that they leave through
};
static_assert(sizeof(Path) == 32);

// What a packet takes to its receiver and an acknowledgement brings back, for congestion control by
// acknowledgements.
struct PathReport {
  Ticks sent = 0;
  std::uint32_t links = 0;
  std::array<rnic::congestion::LinkReading, rnic::congestion::Hpcc::max_links> readings;

  void add(const rnic::congestion::LinkReading& reading) {
    if (links < readings.size()) readings[links++] = reading;
  }
};

class PacketPool {
 public:
  explicit PacketPool(bool with_reports) : with_reports_(with_reports) {}

  Packet& operator[](std::uint32_t index) { return packets_[index]; }
  const Packet& operator[](std::uint32_t index) const { return packets_[index]; }
  // The next packet of the same queue or wire.
  std::uint32_t& next(std::uint32_t index) { return next_[index]; }
  std::uint32_t next(std::uint32_t index) const { return next_[index]; }
  // When it reaches the far end of its wire.
  Ticks& arrival(std::uint32_t index) { return arrival_[index]; }

  // Only where packets have reports.
  PathReport& report(std::uint32_t index) { return reports_[index]; }

  std::uint32_t take() {
    if (free_ == none) {
      packets_.emplace_back();
      if (with_reports_) reports_.emplace_back();
      next_.emplace_back();
      arrival_.emplace_back();
      ++in_use_;
      return static_cast<std::uint32_t>(packets_.size() - 1);
    }
    const std::uint32_t index = free_;
    free_ = next_[index];
    ++in_use_;
    return index;
  }
  // The packet freed last is taken next, because it is still in the cache.
  void give_back(std::uint32_t index) {
    next_[index] = free_;
    free_ = index;
    --in_use_;
  }
  std::uint32_t in_use() const { return in_use_; }

 private:
  std::vector<Packet> packets_;
  std::vector<std::uint32_t> next_;
  std::vector<Ticks> arrival_;
  std::vector<PathReport> reports_;
  bool with_reports_;
  std::uint32_t free_ = none;
  std::uint32_t in_use_ = 0;
};

}  // namespace weir::fabric::sim
