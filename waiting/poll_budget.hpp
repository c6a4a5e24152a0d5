// How long a thread that waits looks at its rings before it sleeps. A sleep costs this end about `shortest`
// and the peer a system call that wakes it, so it looks for twice as long as messages took to come lately,
// between `shortest` and `longest`. After `max_vain` waits in which nothing came it looks only now and then.
//
// Looking also pauses if others take the core away from it: a thread that sleeps is woken before those that
// have used up their time slices, one that polls is among these. Only time in which the thread was really
// descheduled says so. A virtual machine's interrupts, which take 50 to 100 us some hundred times a second,
// do not, and are not charged to the budget.
//
// Pure: time is passed in. Threading: the owner's mutex, or one thread.
#pragma once

#include <algorithm>
#include <chrono>

namespace weir::waiting {

class PollBudget {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;
  static constexpr std::chrono::microseconds shortest{20};
  static constexpr int max_vain = 8, shortest_rest = 8, longest_rest = 512;  // waits
  static constexpr std::chrono::milliseconds shortest_pause{4}, first_pause{20}, longest_pause{320};
  static constexpr int pauses_per_loss = 8;

  explicit PollBudget(Duration longest) : longest_(longest), mean_(longest) {}

  // A wait begins.
  void begin(TimePoint now) {
    if (looking_) {  // what the latest wait was for came while it looked
      vain_ = 0;
      rest_ = shortest_rest;
      learn(latest_ - begun_);
    } else if (resting_ > 0) {
      --resting_;
    }
    begun_ = latest_ = now;
    looking_ = longest_ > Duration::zero() && resting_ == 0 && now >= paused_until_;
  }

  // False: sleep.
  bool look_again(TimePoint now) {
    if (!looking_) return false;
    latest_ = now;
    if (now - begun_ < budget()) return true;
    looking_ = false;
    learn(longest_);
    if (++vain_ >= max_vain) {
      resting_ = rest_;
      rest_ = std::min(2 * rest_, longest_rest);
    }
    return false;
  }

  Duration budget() const {
    return std::clamp<Duration>(2 * mean_, std::min<Duration>(shortest, longest_), longest_);
  }

  // Between two looks the core did something else for `gap`, but for no other thread.
  void interrupted(Duration gap) { begun_ += gap; }
  // Another thread had the core for `lost`.
  void descheduled(TimePoint now, Duration lost) {
    const bool again = now < paused_until_ + 4 * pause_;
    pause_ = again ? std::min<Duration>(2 * pause_, longest_pause)
                   : std::clamp<Duration>(pauses_per_loss * lost, shortest_pause, first_pause);
    paused_until_ = now + pause_;
    looking_ = false;
  }

 private:
  void learn(Duration gap) { mean_ += (std::min(gap, longest_) - mean_) / 8; }

  Duration longest_, mean_;
  TimePoint begun_{}, latest_{}, paused_until_{};
  Duration pause_{};
  bool looking_ = false;
  int vain_ = 0, resting_ = 0, rest_ = shortest_rest;
};

}  // namespace weir::waiting
