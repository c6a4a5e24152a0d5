// How many bytes may be on their way to one destination process, all queue pairs together.
//
// What limits it is the receive buffer of the other end's socket, which nobody tells us of: a small window
// that grows with what is acknowledged and halves when something was lost. Shared by the requesters of a
// destination, which run in several threads: every member is an atomic of its own, and being off by a packet
// does no harm.
#pragma once

#include <atomic>
#include <cstdint>

namespace weir::rnic::packet {

class Window {
 public:
  // In bytes as charge() counts them.
  struct Limits {
    std::uint32_t first = 128 * 1024, least = 8 * 1024, most = 320 * 1024;
  };
  Window() : Window(Limits{}) {}
  explicit Window(const Limits& limits) : limits_(limits), bytes_(limits.first) {}

  // What a packet of that many bytes costs a receive buffer: small ones not much less than larger ones.
  static constexpr std::uint32_t charge(std::uint32_t bytes) { return bytes < 256 ? 256 : bytes; }

  std::uint32_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::int64_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }
  bool open() const { return in_flight() < bytes(); }
  void sent(std::uint32_t charged) { in_flight_.fetch_add(charged, std::memory_order_relaxed); }
  void left(std::uint64_t charged) {
    in_flight_.fetch_sub(static_cast<std::int64_t>(charged), std::memory_order_relaxed);
  }
  // Acknowledged: it grows, doubling each round trip until the first loss, then by a packet each round trip.
  void acknowledged(std::uint64_t charged);
  // Halves, once for everything that was lost in one round trip.
  void lost(std::uint64_t now_ns, std::uint64_t round_trip_ns);

 private:
  const Limits limits_;
  std::atomic<std::uint32_t> bytes_;
  std::atomic<std::uint32_t> threshold_{~0u};  // up to here it doubles
  std::atomic<std::int64_t> in_flight_{0};
  std::atomic<std::uint64_t> last_loss_ns_{0};
};

}  // namespace weir::rnic::packet
