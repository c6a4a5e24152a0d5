// Whether a loop that found no more input looks again or sleeps. Pure: time is passed in.
//
// A wake-up is dear for both ends: the server is late by it, and a client's send pays for it. So after input
// the loop looks on for `longest`. Where that is in vain time and again, it sleeps at once for a number of
// times, twice as many after each further spin in vain, so that an idle or slow client costs next to nothing;
// and so it does where others want the core (Crowd).
#pragma once

#include <algorithm>
#include <chrono>

#include "waiting/crowd.hpp"

namespace weir::waiting {

class SpinPolicy {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;
  static constexpr int most_vain = 8;       // spins in vain, one after the other, before it rests
  static constexpr int shortest_rest = 8;   // inputs after which it does not spin
  static constexpr int longest_rest = 512;  // the same

  explicit SpinPolicy(Duration longest) : longest_(longest), crowd_(longest) {}

  // Input came. True: look for more, as look_again() says.
  bool worked(TimePoint now) {
    if (spinning_) {
      vain_ = 0;
      rest_ = shortest_rest;
    } else if (resting_ > 0) {
      --resting_;
    }
    since_ = now;
    spinning_ = longest_ > Duration::zero() && resting_ == 0 && !crowd_.here(now);
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

  // Between two looks the core was offered to others.
  void yielded(TimePoint before, TimePoint after) {
    if (crowd_.yielded(before, after)) spinning_ = false;
  }

 private:
  Duration longest_;
  Crowd crowd_;
  TimePoint since_{};  // the last input
  bool spinning_ = false;
  int vain_ = 0;
  int resting_ = 0;
  int rest_ = shortest_rest;
};

}  // namespace weir::waiting
