// Whether a loop that found no more input looks again or sleeps. Pure: time is passed in.
//
// A wake-up is expensive for both ends: it delays the server, and a client's send pays for it. So after input
// the loop keeps looking for `longest`. If that is in vain repeatedly, it sleeps at once for a number of
// inputs, twice as many after each further spin in vain, so that an idle or slow client costs next to
// nothing. It also sleeps at once if other programs want the core (CoreContention).
#pragma once

#include <algorithm>
#include <chrono>

#include "waiting/core_contention.hpp"

namespace weir::waiting {

class SpinPolicy {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;
  static constexpr int most_vain = 8;       // consecutive spins in vain before it rests
  static constexpr int shortest_rest = 8;   // inputs after which it does not spin
  static constexpr int longest_rest = 512;  // the same

  explicit SpinPolicy(Duration longest) : longest_(longest) {}

  // Input came. Returns true to look for more, for as long as look_again() says.
  bool worked(TimePoint now) {
    if (spinning_) {
      vain_ = 0;
      rest_ = shortest_rest;
    } else if (resting_ > 0) {
      --resting_;
    }
    since_ = now;
    spinning_ = longest_ > Duration::zero() && resting_ == 0 && !contention_.present(now);
    return spinning_;
  }

  // False: sleep.
  bool look_again(TimePoint now) {
    if (!spinning_) return false;
    if (now - since_ < longest_) return true;
    spinning_ = false;
    if (++vain_ >= most_vain) {
      resting_ = rest_;
      rest_ = std::min(2 * rest_, longest_rest);
    }
    return false;
  }

  // Between two looks the core was yielded to others.
  void yielded(TimePoint before, TimePoint after) {
    if (contention_.yielded(before, after)) spinning_ = false;
  }

 private:
  Duration longest_;
  CoreContention contention_;
  TimePoint since_{};  // the last input
  bool spinning_ = false;
  int vain_ = 0;
  int resting_ = 0;
  int rest_ = shortest_rest;
};

}  // namespace weir::waiting
