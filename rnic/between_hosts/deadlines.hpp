// When queue pairs with packets on their way want to be looked at again. By index, because an entry may
// outlive its queue pair: whoever has that index then is looked at too early, which does no harm. Threading:
// any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

namespace weir::rnic {

class Deadlines {
 public:
  void add(std::uint64_t deadline_ns, std::uint32_t qp_index) {
    const std::lock_guard lock(mutex_);
    pending_.emplace(deadline_ns, qp_index);
    show_first();
  }
  bool any_due(std::uint64_t now_ns) const { return first_ns_.load(std::memory_order_relaxed) <= now_ns; }
  std::optional<std::uint32_t> take_due(std::uint64_t now_ns) {
    const std::lock_guard lock(mutex_);
    if (pending_.empty() || pending_.top().first > now_ns) return std::nullopt;
    const std::uint32_t index = pending_.top().second;
    pending_.pop();
    show_first();
    return index;
  }

 private:
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
  using Entry = std::pair<std::uint64_t, std::uint32_t>;

  void show_first() {
    first_ns_.store(pending_.empty() ? never : pending_.top().first, std::memory_order_relaxed);
  }

  std::mutex mutex_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> pending_;
  std::atomic<std::uint64_t> first_ns_{never};  // pollers look without the lock
};

}  // namespace weir::rnic
