// How often a thread that polls looks in vain before others of its loop get their turn: so many times in a
// row, or for 4 us if that is less. A look at memory takes 20 ns; one that takes packets from a socket is a
// system call and takes 50 times as long, and whoever waits for what the round completed waits for its end.
//
// Pure: the clock is passed in, and asked after each fourth look only.
#pragma once

#include <chrono>

namespace weir::waiting {

class VainTries {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::microseconds longest{4};
  static constexpr int tries_a_glance = 4;  // at the clock

  VainTries(int limit, TimePoint now) : limit_(limit), since_(now) {}

  void found(TimePoint now) {
    tries_ = 0;
    since_ = now;
  }
  // After a look that found nothing. False: enough.
  template <class Now>
  bool again(Now now) {
    if (++tries_ >= limit_) return false;
    slow_ = tries_ % tries_a_glance == 0 && now() - since_ >= longest;
    return !slow_;
  }
  // The time was up first: what the thread waits for comes through the kernel, or something took its core.
  bool slow() const { return slow_; }

 private:
  const int limit_;
  int tries_ = 0;
  bool slow_ = false;
  TimePoint since_;
};

}  // namespace weir::waiting
