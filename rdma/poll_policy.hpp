// When to go on polling, when to let others run, and when to sleep. Pure: time is passed in.
//
// After a round that found nothing left to do there are three ways on:
//   yield  give the core away and poll again: cheapest while traffic flows, also when the peer needs this
//   very core; sleep  ask the device to signal: once nothing came for `idle_spin`, so that an idle engine
//   costs nothing; sleep  also at once while the machine is crowded. There a yield costs whole time slices of
//   other programs, and who
//          sleeps is woken before those who have used up theirs. That a yield took longer than `idle_spin` is
//          how we notice; we try again later, each time after twice as long, in case the crowd has gone.
#pragma once

#include <algorithm>
#include <chrono>

namespace weir::rdma {

class PollPolicy {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class Next { yield, sleep };

  static constexpr std::chrono::milliseconds shortest_crowded{20};
  static constexpr std::chrono::milliseconds longest_crowded{2000};

  explicit PollPolicy(std::chrono::microseconds idle_spin) : idle_spin_(idle_spin) {}

  // A round ended at `now`; `progress`: it found or was given something to do.
  Next after_round(TimePoint now, bool progress) {
    if (progress) idle_at_ = now + idle_spin_;
    crowded_ = now < crowded_until_;
    return now >= idle_at_ || crowded_ ? Next::sleep : Next::yield;
  }

  // As of the last round. While it is crowded, spinning only uses up the time for which a sleeper is woken
  // early.
  bool crowded() const { return crowded_; }

  void yielded(TimePoint before, TimePoint after) {
    if (after - before <= idle_spin_) {
      crowded_for_ = shortest_crowded;
      return;
    }
    crowded_until_ = after + crowded_for_;
    crowded_ = true;
    crowded_for_ = std::min(2 * crowded_for_, longest_crowded);
  }

 private:
  std::chrono::microseconds idle_spin_;
  TimePoint idle_at_{};
  TimePoint crowded_until_{};
  bool crowded_ = false;
  std::chrono::milliseconds crowded_for_ = shortest_crowded;
};

}  // namespace weir::rdma
