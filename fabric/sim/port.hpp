// A port: its eight egress queues, the wire behind it, and the choice of the queue that sends next.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "fabric/sim/packet.hpp"

namespace weir::fabric::sim {

// The state that arriving and leaving packets use, in one cache line.
struct alignas(64) Port {
  Ticks free_at = 0;               // end of the current frame and its gap
  Ticks transmit_at = no_time;     // time of the valid transmit event; others of this port are stale
  std::uint32_t wire_head = none;  // packets on the way to the peer, in order of arrival
  std::uint32_t wire_tail = none;
  std::uint32_t peer = none;
  std::uint32_t node = none;
  std::uint32_t ticks_per_byte = 0;
  std::uint32_t latency = 0;  // ticks from sending the last bit until the far end's MMU has it
  std::uint32_t nic = none;   // on a host: index into Simulation::nics_; none: on a switch
  std::uint32_t peer_node = none;
  std::uint8_t waiting = 0;   // one bit for each queue with packets
  std::uint8_t paused = 0;    // one bit for each priority stopped by PFC
  std::uint8_t strict = 0;    // one bit for each queue of strict priority
  std::uint8_t turn = 0;      // DWRR: whose turn it is
  std::uint8_t dropping = 0;  // one bit for each queue that the watchdog empties
  std::uint8_t deaf = 0;      // one bit for each priority that ignores PFC (watchdog: forward)
  bool up = true;
  bool peer_is_host = false;
};
static_assert(sizeof(Port) == 64);

// An egress queue, including its counters, in one cache line.
struct alignas(64) Queue {
  std::uint32_t head = none;
  std::uint32_t tail = none;
  std::uint32_t bytes = 0;
  std::uint32_t cells = 0;
  std::uint32_t bytes_most = 0;
  std::uint32_t deficit = 0;
  std::uint32_t quantum = 0;
  std::uint32_t marked = 0;
  std::uint32_t dropped = 0;     // at this egress: lossy threshold, dead link, watchdog
  std::uint32_t alpha = 0;       // lossy threshold; 0: none
  std::uint32_t kmin_bytes = 0;  // ECN marks; the probability between them is in Simulation::pmax_
  std::uint32_t kmax_bytes = 0;  // 0: no marking
  std::uint64_t sent_packets = 0;
  std::uint64_t sent_bytes = 0;
};
static_assert(sizeof(Queue) == 64);

inline void append(PacketPool& pool, Queue& queue, std::uint32_t index) {
  pool.next(index) = none;
  if (queue.head == none)
    queue.head = index;
  else
    pool.next(queue.tail) = index;
  queue.tail = index;
}

inline std::uint32_t take_first(PacketPool& pool, Queue& queue) {
  const std::uint32_t index = queue.head;
  queue.head = pool.next(index);
  return index;
}

// Which of the queues in `ready` (not 0) sends: the highest strict one, otherwise by deficit weighted round
// robin (Shreedhar and Varghese), in which a queue sends during its turn until its deficit is used up.
inline unsigned pick(Port& port, std::span<Queue> queues, PacketPool& pool, unsigned ready) {
  if ((ready & (ready - 1)) == 0) return std::countr_zero(ready);
  if (const unsigned strict = ready & port.strict) return std::bit_width(strict) - 1;
  for (;;) {
    if (ready & (1u << port.turn)) {
      Queue& queue = queues[port.turn];
      const std::uint32_t bytes = pool[queue.head].bytes;
      if (queue.deficit >= bytes) {
        queue.deficit -= bytes;
        return port.turn;
      }
    }
    port.turn = (port.turn + 1) % priorities;
    Queue& next = queues[port.turn];
    next.deficit = ready & (1u << port.turn) ? next.deficit + next.quantum : 0;
  }
}

}  // namespace weir::fabric::sim
