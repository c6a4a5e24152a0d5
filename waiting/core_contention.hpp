// Whether other programs want this core. If they do, a yield costs whole time slices of theirs, and a
// sleeping thread is woken before those that have used up their slices, so polling does not pay. We detect a
// crowd by a yield that took long, and try again later, each time after twice as long, in case the crowd has
// gone. Pure: time is passed in.
#pragma once

#include <algorithm>
#include <chrono>

namespace weir::waiting {

class CoreContention {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  static constexpr std::chrono::milliseconds shortest{20};
  static constexpr std::chrono::milliseconds longest{2000};
  // A time slice of another program lasts a millisecond or more. A virtual machine's timer interrupt, which
  // comes up to 500 times a second and says nothing of others, takes 50 to 100 us.
  static constexpr std::chrono::microseconds long_yield{500};

  bool present(TimePoint now) const { return now < until_; }

  // A yield lasted from `before` to `after`. Returns true if that was long, so there is a crowd.
  bool yielded(TimePoint before, TimePoint after) {
    if (after - before <= long_yield) {
      stays_ = shortest;
      return false;
    }
    until_ = after + stays_;
    stays_ = std::min(2 * stays_, longest);
    return true;
  }

 private:
  TimePoint until_{};
  std::chrono::milliseconds stays_ = shortest;
};

}  // namespace weir::waiting
