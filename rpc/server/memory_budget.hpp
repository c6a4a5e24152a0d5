// How much memory all connections of a server may hold together.
//
// A connection compares what it holds now with what it has charged before, in steps of `grain`: smaller
// changes touch nothing that is shared. A charge beyond the limit still counts; its connection is told and
// must release memory. The last eighth is not for new calls, so that running calls can end.
//
// Long before that, each user's part of what is left shrinks as that does (the dynamic thresholds of switch
// buffers: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998). However many clients ask for
// more than the server can do, they are held back by their own connections while more than half of the memory
// is free for everybody else.
//
// Threading: any thread. Relaxed: a sum that is compared with a limit, and orders nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace weir::rpc {

class MemoryBudget {
 public:
  static constexpr std::size_t grain = 16 << 10;
  static constexpr std::size_t least_share = 64 << 10;

  explicit MemoryBudget(std::size_t most_bytes) : most_(most_bytes) {}

  // `settled` is what this user has settled so far, 0 at first, and `now` what it holds. Returns false if all
  // users together hold too much and this one holds more than before.
  bool settle(std::size_t& settled, std::size_t now) {
    now -= now % grain;
    if (now == settled) return true;
    const std::size_t before = settled;
    settled = now;
    if (now < before) {
      used_.fetch_sub(before - now, std::memory_order_relaxed);
      return true;
    }
    const std::size_t all = used_.fetch_add(now - before, std::memory_order_relaxed) + (now - before);
    if (std::size_t most = peak_.load(std::memory_order_relaxed); all > most)
      peak_.compare_exchange_strong(most, all, std::memory_order_relaxed);  // a peak that is missed was short
    return all <= most_;
  }
  // How many of the `most` bytes that one user may let wait, or run, it may use now.
  std::size_t share(std::size_t most) const {
    const std::size_t for_all = most_ / 8 * 3, filled = used();
    const std::size_t room = filled < for_all ? for_all - filled : 0;
    return std::min(most, std::max(least_share, room / 4));
  }
  bool takes_calls() const { return used() <= most_ - most_ / 8; }
  std::size_t used() const { return used_.load(std::memory_order_relaxed); }
  std::size_t most() const { return most_; }
  // The most that was held since forget_peak().
  std::size_t peak() const { return peak_.load(std::memory_order_relaxed); }
  void forget_peak() { peak_.store(used(), std::memory_order_relaxed); }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> used_{0};
  std::atomic<std::size_t> peak_{0};
};

}  // namespace weir::rpc
