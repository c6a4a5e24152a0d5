// Whether the ring pays towards another process: not where the receiver sleeps at most sends.
//
// A receiver that is awake finds a byte in its ring at no cost. One that sleeps is woken by a system call
// beside the write, which is dearer than TCP's one call for both; and a receiver sleeps because others want
// its core, or because little comes. So we count how many of `window` sends had to wake, and if it was the
// half, the next sends go by TCP: `shortest_rest` of them, twice as many after each further window in vain.
//
// Pure; counts of several threads may lose one another's, which moves the next look a little.
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
  std::atomic<std::uint32_t> rest_{0};              // sends that go by TCP before the next look
  std::atomic<std::uint32_t> next_rest_{shortest_rest};
};

}  // namespace weir::sockets
