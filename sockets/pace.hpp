// Whether the ring pays towards another process, by what sends cost here.
//
// A receiver that is awake finds a byte in its ring at no cost. For one that sleeps a send by the ring
// includes the system call that wakes it, as every send by TCP does. So if most sends of a window had to wake
// it, their mean time is compared with that of sends by TCP. If these are cheaper, or their time is not known
// yet, sends go by TCP for a while, twice as long after each further such window, up to `longest_rest`.
//
// Pure: time is passed in. Counts of several threads may get lost, which only shifts the next look a little.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <type_traits>

namespace weir::sockets {

class Pace {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;
  static constexpr std::uint32_t window = 64;
  static constexpr std::chrono::milliseconds shortest_rest{1}, longest_rest{20};
  // More, and something else had the core meanwhile.
  static constexpr std::chrono::microseconds longest_send{50};

  bool ring_pays(TimePoint now) const {
    return now.time_since_epoch().count() >= rest_until_.load(std::memory_order_relaxed);
  }

  void sent_by_ring(TimePoint now, Duration took, bool woke) {
    const auto sends = add(sends_, 1), wakes = add(wakes_, woke ? 1 : 0);
    const auto spent = add(spent_, clipped(took));
    if (sends < window) return;
    sends_.store(0, std::memory_order_relaxed);
    wakes_.store(0, std::memory_order_relaxed);
    spent_.store(0, std::memory_order_relaxed);
    const auto by_tcp = tcp_.load(std::memory_order_relaxed);
    if (2 * wakes < window || (by_tcp != 0 && spent / window <= by_tcp)) {
      next_rest_.store(count(shortest_rest), std::memory_order_relaxed);
      return;
    }
    const auto rest = next_rest_.load(std::memory_order_relaxed);
    rest_until_.store(now.time_since_epoch().count() + rest, std::memory_order_relaxed);
    next_rest_.store(std::min(2 * rest, count(longest_rest)), std::memory_order_relaxed);
  }

  void sent_by_tcp(Duration took) {
    const auto mean = tcp_.load(std::memory_order_relaxed), now = std::max<std::int64_t>(clipped(took), 1);
    tcp_.store(mean == 0 ? now : std::max<std::int64_t>(mean + (now - mean) / 8, 1),
               std::memory_order_relaxed);
  }

 private:
  static constexpr std::int64_t count(Duration of) { return of.count(); }
  static std::int64_t clipped(Duration took) { return std::min<Duration>(took, longest_send).count(); }
  template <class Word>
  static Word add(std::atomic<Word>& to, std::type_identity_t<Word> more) {
    const Word sum = to.load(std::memory_order_relaxed) + more;
    to.store(sum, std::memory_order_relaxed);
    return sum;
  }

  std::atomic<std::uint32_t> sends_{0}, wakes_{0};  // in this window
  std::atomic<std::int64_t> spent_{0};              // ns, in this window
  std::atomic<std::int64_t> tcp_{0};                // ns a send by TCP, lately; 0: unknown
  std::atomic<std::int64_t> rest_until_{0};
  std::atomic<std::int64_t> next_rest_{count(shortest_rest)};
};

}  // namespace weir::sockets
