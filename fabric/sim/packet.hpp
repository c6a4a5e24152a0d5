// Packets: 32 bytes each in one pool, named by 32-bit indices, chained into queues and wires through `next`.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/sim/settings.hpp"

namespace weir::fabric::sim {

enum class PacketKind : std::uint8_t { data, ack, nak, cnp };

struct Packet {
  std::uint32_t next;
  std::uint32_t flow;  // slot
  std::uint32_t psn : 24, priority : 3, kind : 3, marked : 1, last : 1;
  std::uint32_t destination : 20, hash : 12;
  std::uint32_t ingress;  // port of this switch through which it came
  std::uint16_t bytes;    // on the wire, without the gap
  std::uint16_t cells;    // of this switch's buffer
  Ticks arrival;          // when it is at the far end of the wire that it is on
};
static_assert(sizeof(Packet) == 32);

class PacketPool {
 public:
  Packet& operator[](std::uint32_t index) { return packets_[index]; }
  const Packet& operator[](std::uint32_t index) const { return packets_[index]; }

  std::uint32_t take() {
    if (free_ == none) {
      packets_.emplace_back();
      ++in_use_;
      return static_cast<std::uint32_t>(packets_.size() - 1);
    }
    const std::uint32_t index = free_;
    free_ = packets_[index].next;
    ++in_use_;
    return index;
  }
  // The last one given back is the next one taken: it is still in the cache.
  void give_back(std::uint32_t index) {
    packets_[index].next = free_;
    free_ = index;
    --in_use_;
  }
  std::uint32_t in_use() const { return in_use_; }
  std::size_t most() const { return packets_.size(); }

 private:
  std::vector<Packet> packets_;
  std::uint32_t free_ = none;
  std::uint32_t in_use_ = 0;
};

}  // namespace weir::fabric::sim
