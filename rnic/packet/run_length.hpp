// How many packets may leave in a run to one destination.
//
// Some paths silently lose every run and carry single packets: kernels 7.0 to 7.1.4 mangle the UDP headers of
// runs on some devices, some bridges and hosts of virtual machines drop them. No call fails; nothing longer
// than a packet arrives, so only what was sent alone, the probe, is ever answered. Then runs become shorter,
// half as long for the first such loss, single packets for the next, and are tried again, twice as long each
// time, after a while. A loss for another reason costs a few system calls that way.
//
// Threading: any thread. limit() costs two loads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "rnic/memory/spin_lock.hpp"

namespace weir::rnic::packet {

class RunLength {
 public:
  static constexpr std::uint32_t longest = 64;
  static constexpr std::uint64_t first_pause_ns = 10'000'000'000, longest_pause_ns = 600'000'000'000;

  std::size_t limit(std::uint64_t now_ns) {
    if (now_ns >= longer_at_ns_.load(std::memory_order_relaxed)) lengthen(now_ns);
    return limit_.load(std::memory_order_relaxed);
  }
  // A packet was answered that travelled alone, and of those that left together behind it nothing came.
  void lost(std::uint64_t now_ns) {
    const std::lock_guard lock(lock_);
    const std::uint32_t now = limit_.load(std::memory_order_relaxed);
    if (now == 1) return;
    // What was tried failed: it is tried less often.
    if (tried_) pause_ns_ = std::min(2 * pause_ns_, longest_pause_ns);
    const std::uint32_t shorter =
        lost_before_.exchange(true, std::memory_order_relaxed) || tried_ ? 1 : now / 2;
    tried_ = false;
    limit_.store(shorter, std::memory_order_relaxed);
    longer_at_ns_.store(now_ns + pause_ns_, std::memory_order_relaxed);
    if (shorter == 1) gave_up_.store(true, std::memory_order_relaxed);
  }
  // Several packets arrived that had left together.
  void arrived() {
    if (lost_before_.load(std::memory_order_relaxed)) lost_before_.store(false, std::memory_order_relaxed);
  }
  // True once each time that it comes down to single packets.
  bool gave_up() {
    return gave_up_.load(std::memory_order_relaxed) && gave_up_.exchange(false, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t never = ~std::uint64_t{0};

  void lengthen(std::uint64_t now_ns) {
    const std::lock_guard lock(lock_);
    if (now_ns < longer_at_ns_.load(std::memory_order_relaxed)) return;
    const std::uint32_t longer = std::min(2 * limit_.load(std::memory_order_relaxed), longest);
    tried_ = true;
    limit_.store(longer, std::memory_order_relaxed);
    longer_at_ns_.store(longer == longest ? never : now_ns + pause_ns_, std::memory_order_relaxed);
  }

  std::atomic<std::uint32_t> limit_{longest};
  std::atomic<std::uint64_t> longer_at_ns_{never};
  std::atomic<bool> lost_before_{false}, gave_up_{false};
  SpinLock lock_;
  std::uint64_t pause_ns_ = first_pause_ns;
  bool tried_ = false;  // the present limit is a try
};

}  // namespace weir::rnic::packet
