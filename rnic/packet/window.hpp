// How many bytes may be on their way to one destination process, all queue pairs together.
//
// What limits it is the receive buffer of the other end's socket, which nobody tells us of: a small window
// that grows with what is acknowledged and halves when something was lost. While answers take as long as a
// process waits for a processor, the window may be larger, as a transfer would else move one window in each
// time slice; that is given up for a while when the buffer turns out not to hold as much. Shared by the
// requesters of a destination, which run in several threads: every member is an atomic of its own, and being
// off by a packet does no harm.
//
// Where switches mark packets (ECN) the other end sends congestion notifications, and a second limit follows
// DCQCN, counted in bytes on their way instead of bits a second: what acknowledgements let go is paced by the
// other end already. The smaller of both holds.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "rnic/congestion/dcqcn.hpp"
#include "rnic/memory/spin_lock.hpp"
#include "rnic/packet/run_length.hpp"

namespace weir::rnic::packet {

class Window {
 public:
  // In bytes as charge() counts them.
  struct Limits {
    std::uint32_t first = 128 * 1024, least = 8 * 1024, most = 320 * 1024;
    std::uint32_t most_of_late = 2048 * 1024;  // to a destination that answers late
  };
  static constexpr std::uint64_t late_ns = 1'000'000;  // a smoothed round trip of this length is late
  static constexpr std::uint64_t held_down_ns = 10'000'000'000;  // after a loss above `most`
  Window() : Window(Limits{}) {}
  explicit Window(const Limits& limits) : limits_(limits), bytes_(limits.first) {}

  // What a packet of that many bytes costs a receive buffer: small ones not much less than larger ones.
  static constexpr std::uint32_t charge(std::uint32_t bytes) { return bytes < 256 ? 256 : bytes; }

  std::uint32_t bytes() const {
    return std::min(bytes_.load(std::memory_order_relaxed), notified_.load(std::memory_order_relaxed));
  }
  std::int64_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }
  bool open() const { return in_flight() < bytes(); }
  // Requesters that wait for it, or for their turn.
  std::uint32_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  void begin_waiting() { waiting_.fetch_add(1, std::memory_order_relaxed); }
  void end_waiting() { waiting_.fetch_sub(1, std::memory_order_relaxed); }
  void sent(std::uint32_t charged) { in_flight_.fetch_add(charged, std::memory_order_relaxed); }
  void left(std::uint64_t charged) {
    in_flight_.fetch_sub(static_cast<std::int64_t>(charged), std::memory_order_relaxed);
  }
  // Acknowledged: it grows, doubling each round trip until the first loss, then by a packet each round trip.
  void acknowledged(std::uint64_t charged, std::uint64_t now_ns, std::uint64_t round_trip_ns);
  // Halves, once for everything that was lost in one round trip.
  void lost(std::uint64_t now_ns, std::uint64_t round_trip_ns);
  RunLength runs;
  // A congestion notification came.
  void notified(std::uint64_t now_ns);
  // Before bytes() is asked: the limit of notifications grows with the time. Costs a load where none came.
  void advance(std::uint64_t now_ns) {
    if (now_ns >= due_ns_.load(std::memory_order_relaxed)) recover(now_ns);
  }

 private:
  void recover(std::uint64_t now_ns);
  void show();

  const Limits limits_;
  std::atomic<std::uint32_t> bytes_;
  std::atomic<std::uint32_t> threshold_{~0u};  // up to here it doubles
  std::atomic<std::int64_t> in_flight_{0};
  std::atomic<std::uint32_t> waiting_{0};
  std::atomic<std::uint64_t> last_loss_ns_{0};
  // Until then `most` is the most, whatever the round trip.
  std::atomic<std::uint64_t> held_down_until_ns_{0};

  SpinLock notifying_;
  congestion::ReactionPoint reaction_;  // in bytes
  std::uint64_t last_notified_ns_ = 0;
  std::atomic<std::uint32_t> notified_{~0u};  // no limit
  std::atomic<std::uint64_t> due_ns_{congestion::never};
};

}  // namespace weir::rnic::packet
