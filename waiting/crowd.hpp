// Whether other programs want this core. If they do, a yield costs whole time slices of theirs, and a
// sleeping thread is woken before those that have used up their slices, so polling does not pay. We detect a
// crowd by a yield that took long, and try again later, each time after twice as long, in case the crowd has
// gone. Pure: time is passed in.
#pragma once

#include <algorithm>
#include <chrono>

namespace weir::waiting {

class Crowd {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  static constexpr std::chrono::milliseconds shortest{20};
  static constexpr std::chrono::milliseconds longest{2000};

  explicit Crowd(Duration long_yield) : long_yield_(long_yield) {}

  bool here(TimePoint now) const { return now < until_; }

  // A yield lasted from `before` to `after`. Returns true if that was long, so there is a crowd.
  bool yielded(TimePoint before, TimePoint after) {
    if (after - before <= long_yield_) {
      stays_ = shortest;
      return false;
    }
    until_ = after + stays_;
    stays_ = std::min(2 * stays_, longest);
    return true;
  }

 private:
  Duration long_yield_;
  TimePoint until_{};
  std::chrono::milliseconds stays_ = shortest;
};

}  // namespace weir::waiting
