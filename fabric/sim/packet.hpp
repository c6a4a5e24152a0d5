// Packets in one pool, named by 32-bit indices, chained into queues and wires. What the chains need (the
// successor, when it arrives) stands in arrays of its own: following and extending a chain then touches
// memory that is small enough to stay in the cache, and not the packets.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "fabric/sim/settings.hpp"

namespace weir::fabric::sim {

enum class PacketKind : std::uint8_t { data, ack, nak, cnp };

struct Packet {
  std::uint32_t flow;  // slot
  std::uint32_t psn : 24, priority : 3, kind : 3, marked : 1, last : 1;
  std::uint32_t destination : 20, hash : 12;
  std::uint32_t ingress;  // port of this switch through which it came
  // Port through which it will leave the switch that it is on the way to, and how many switches it has been
  // sent to; Simulation::routes_stay_.
  std::uint32_t out : 24, hop : 8;
  std::uint16_t bytes;  // on the wire, without the gap
  std::uint16_t cells;  // of this switch's buffer
};
static_assert(sizeof(Packet) == 24);
constexpr unsigned data_kind = static_cast<unsigned>(PacketKind::data);
constexpr std::uint32_t no_port = 0xffffff;  // a port that fits into Packet::out, and is none

// Where the packets of a flow go, one direction: they all take the same way as long as no link fails.
struct alignas(32) Path {
  static constexpr std::uint32_t most = 8;  // switches; further on each is asked anew
  std::array<std::uint32_t, most> ports;    // of each switch, the one that they leave through
};
static_assert(sizeof(Path) == 32);

class PacketPool {
 public:
  Packet& operator[](std::uint32_t index) { return packets_[index]; }
  const Packet& operator[](std::uint32_t index) const { return packets_[index]; }
  // The next one of the same queue or wire.
  std::uint32_t& next(std::uint32_t index) { return next_[index]; }
  std::uint32_t next(std::uint32_t index) const { return next_[index]; }
  // When it is at the far end of the wire that it is on.
  Ticks& arrival(std::uint32_t index) { return arrival_[index]; }

  std::uint32_t take() {
    if (free_ == none) {
      packets_.emplace_back();
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
  // The last one given back is the next one taken: it is still in the cache.
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
  std::uint32_t free_ = none;
  std::uint32_t in_use_ = 0;
};

}  // namespace weir::fabric::sim
