// The MMU of a switch: decides which packets may use its buffer. A packet counts once against its ingress
// (port, priority group) and once against its egress (port, queue), in whole cells.
//
// An ingress priority group takes cells in this order: its guaranteed part, the shared pool up to its dynamic
// threshold
//     T = alpha * (pool - used)                                                         (Choudhury and Hahne)
// and then, if it is lossless, headroom. The packet that no longer fits below T triggers XOFF and is the
// first in headroom. Cells are freed in the opposite order. XON follows when no headroom is used and the
// shared part is at most max(xon, T - xon_offset), which is SAI's rule.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fabric/sim/settings.hpp"

namespace weir::fabric::sim {

// alpha as a fixed-point factor, so that thresholds are exact and equal on every machine.
constexpr unsigned alpha_bits = 16;
constexpr std::uint64_t alpha_factor(double alpha) {
  return static_cast<std::uint64_t>(alpha * (1u << alpha_bits));
}

struct SharedPool {
  std::uint64_t size = 0;  // cells
  std::uint64_t used = 0;
  std::uint64_t used_most = 0;
  std::uint64_t headroom_size = 0;  // shared headroom; 0: private
  std::uint64_t headroom_used = 0;
  std::uint64_t headroom_most = 0;
  std::uint32_t cell_bytes = 1;
  std::uint32_t settings = 0;

  std::uint64_t free() const { return size > used ? size - used : 0; }
  std::uint64_t threshold(std::uint64_t alpha) const { return (free() * alpha) >> alpha_bits; }
  std::uint32_t cells(std::uint32_t bytes) const {
    return cell_bytes == 1 ? bytes : (bytes + cell_bytes - 1) / cell_bytes;
  }
};

// An ingress priority group: one cache line.
struct alignas(64) PriorityGroup {
  std::uint32_t guaranteed = 0;  // cells; limits
  std::uint32_t headroom = 0;
  std::uint32_t xon = 0;
  std::uint32_t xon_offset = 0;
  std::uint32_t used_guaranteed = 0;  // usage
  std::uint32_t used_shared = 0;
  std::uint32_t used_headroom = 0;
  std::uint32_t alpha = 0;
  std::uint32_t shared_most = 0;  // watermarks
  std::uint32_t headroom_most = 0;
  std::uint32_t xoff_sent = 0;  // counters, including refresh frames
  std::uint32_t xon_sent = 0;
  std::uint32_t dropped = 0;
  bool lossless = false;
  bool paused = false;  // XOFF is in force at the peer
};

enum class Admission : std::uint8_t { taken, over, dropped };  // over: admitted into headroom

inline Admission admit(SharedPool& pool, PriorityGroup& group, std::uint32_t cells) {
  if (group.used_guaranteed + cells <= group.guaranteed) {
    group.used_guaranteed += cells;
    return Admission::taken;
  }
  if (group.used_shared + cells <= pool.threshold(group.alpha) && cells <= pool.free()) {
    group.used_shared += cells;
    group.shared_most = std::max(group.shared_most, group.used_shared);
    pool.used += cells;
    pool.used_most = std::max(pool.used_most, pool.used);
    return Admission::taken;
  }
  if (!group.lossless || group.used_headroom + cells > group.headroom ||
      (pool.headroom_size != 0 && pool.headroom_used + cells > pool.headroom_size)) {
    ++group.dropped;
    return Admission::dropped;
  }
  group.used_headroom += cells;
  group.headroom_most = std::max(group.headroom_most, group.used_headroom);
  pool.headroom_used += cells;
  pool.headroom_most = std::max(pool.headroom_most, pool.headroom_used);
  return Admission::over;
}

inline void release(SharedPool& pool, PriorityGroup& group, std::uint32_t cells) {
  const std::uint32_t headroom = std::min(cells, group.used_headroom);
  group.used_headroom -= headroom;
  pool.headroom_used -= headroom;
  cells -= headroom;
  const std::uint32_t shared = std::min(cells, group.used_shared);
  group.used_shared -= shared;
  pool.used -= shared;
  group.used_guaranteed -= cells - shared;
}

inline bool may_send_xon(const SharedPool& pool, const PriorityGroup& group) {
  if (group.used_headroom != 0) return false;
  return group.used_shared <= group.xon ||
         std::uint64_t{group.used_shared} + group.xon_offset <= pool.threshold(group.alpha);
}

}  // namespace weir::fabric::sim
