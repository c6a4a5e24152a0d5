// Whether the ring pays towards another process. It does not if the receiver is asleep at most sends.
//
// A receiver that is awake finds a byte in its ring at no cost. A sleeping receiver needs a system call to
// wake it besides the write, which costs more than TCP's one call for both. Receivers sleep because others
// want their core or because little comes. So we count how many of `window` sends had to wake the receiver.
// If it was half, the next `shortest_rest` sends go by TCP, and twice as many after each further such window.
//
// Pure. Counts of several threads may get lost, which only shifts the next look a little.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace weir::sockets {

class Pace {
 public:
  static constexpr std::uint32_t window = 64, shortest_rest = 2048, longest_rest = 1 << 18;

  bool ring_pays() const { return rest_.load(std::memory_order_relaxed) == 0; }

  void sent_by_ring(bool woke) {
    const auto sends = add(sends_, 1), wakes = add(wakes_, woke ? 1 : 0);
    if (sends < window) return;
    sends_.store(0, std::memory_order_relaxed);
    wakes_.store(0, std::memory_order_relaxed);
    if (2 * wakes < window) {
      next_rest_.store(shortest_rest, std::memory_order_relaxed);
      return;
    }
    const auto rest = next_rest_.load(std::memory_order_relaxed);
    rest_.store(rest, std::memory_order_relaxed);
    next_rest_.store(std::min(2 * rest, longest_rest), std::memory_order_relaxed);
  }

  void sent_by_tcp() {
    if (const auto rest = rest_.load(std::memory_order_relaxed); rest > 0)
      rest_.store(rest - 1, std::memory_order_relaxed);
  }

 private:
  static std::uint32_t add(std::atomic<std::uint32_t>& to, std::uint32_t more) {
    const auto sum = to.load(std::memory_order_relaxed) + more;
    to.store(sum, std::memory_order_relaxed);
    return sum;
  }

  std::atomic<std::uint32_t> sends_{0}, wakes_{0};  // in this window
  std::atomic<std::uint32_t> rest_{0};              // sends by TCP before the next try
  std::atomic<std::uint32_t> next_rest_{shortest_rest};
};

}  // namespace weir::sockets
