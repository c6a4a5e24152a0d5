// When to retry something that no event announces: the pauses grow with the time spent retrying, and there is
// one timer, however often others retry. Pure: time is passed in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace weir::rnic {

class RetryPauses {
 public:
  void begin(std::uint64_t now_ns) { since_ns_ = now_ns; }
  std::uint64_t tried_for_ns(std::uint64_t now_ns) const { return now_ns - since_ns_; }
  // When to run a timer; nothing: one is already running.
  std::optional<std::uint64_t> next(std::uint64_t now_ns) {
    if (now_ns < next_ns_) return std::nullopt;
    return next_ns_ = now_ns + std::clamp(tried_for_ns(now_ns) / 4, shortest_ns, longest_ns);
  }
  // For a known due time; nothing: a timer for it is already running.
  std::optional<std::uint64_t> at(std::uint64_t due_ns) {
    if (next_ns_ == due_ns) return std::nullopt;
    return next_ns_ = due_ns;
  }

 private:
  static constexpr std::uint64_t shortest_ns = 100'000, longest_ns = 20'000'000;

  std::uint64_t since_ns_ = 0;
  std::uint64_t next_ns_ = 0;  // when the timer runs
};

}  // namespace weir::rnic
