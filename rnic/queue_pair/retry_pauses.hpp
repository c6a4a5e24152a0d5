// When to try again what no event announces: with pauses that grow with the time for which it has been tried,
// and one timer however often others try. Pure: time is passed in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace weir::rnic {

class RetryPauses {
 public:
  void begin(std::uint64_t now_ns) { since_ns_ = now_ns; }
  std::uint64_t tried_for_ns(std::uint64_t now_ns) const { return now_ns - since_ns_; }
  // When a timer is to run; nothing: one runs already.
  std::optional<std::uint64_t> next(std::uint64_t now_ns) {
    if (now_ns < next_ns_) return std::nullopt;
    return next_ns_ = now_ns + std::clamp(tried_for_ns(now_ns) / 4, shortest_ns, longest_ns);
  }
  // At a time that is known; nothing: a timer for it runs already.
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
