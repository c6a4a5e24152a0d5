// When to retry something that no event announces: the pauses grow with the time spent retrying, and there is
// one timer, however often others retry. Pure: time is passed in.
//
// A timer looks only at queues that are noted as parked (Adapter::note_parked). So a queue is noted first,
// and the clock is read behind that (`noted_now_ns`): a timer that is still to come then finds the queue, and
// one that has come may have missed it, and is set again.
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
  std::optional<std::uint64_t> next(std::uint64_t noted_now_ns) {
    if (noted_now_ns < next_ns_) return std::nullopt;
    return next_ns_ = noted_now_ns + std::clamp(tried_for_ns(noted_now_ns) / 4, shortest_ns, longest_ns);
  }
  // For a known due time; nothing: a timer for it is already running.
  std::optional<std::uint64_t> at(std::uint64_t due_ns, std::uint64_t noted_now_ns) {
    if (next_ns_ == due_ns && noted_now_ns < due_ns) return std::nullopt;
    return next_ns_ = due_ns;
  }

 private:
  static constexpr std::uint64_t shortest_ns = 100'000, longest_ns = 20'000'000;

  std::uint64_t since_ns_ = 0;
  std::uint64_t next_ns_ = 0;  // when the timer runs
};

}  // namespace weir::rnic
