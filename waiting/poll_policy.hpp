// When to go on polling, when to let others run, and when to sleep. Pure: time is passed in.
//
// After a round that found nothing left to do there are three ways on:
// - yield: give the core away and poll again. Cheapest while traffic flows, also when the peer needs this
//   very core.
// - sleep: ask the device to signal, once nothing came for a while, so that an idle engine costs nothing. The
//   while is `idle_spin`, and longer where that pays (Spin).
// - sleep at once while the machine is contended (CoreContention): a yield took a time slice of another
// program.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

#include "waiting/core_contention.hpp"

namespace weir::waiting {

// How long to look before a sleep. If both ends work on each message for longer than the shortest spin, they
// sleep and are woken in turn, and a wake-up takes as long as the work. So short sleeps, of which the wake-up
// is the larger part, make the spin longer. A longer spin that repeatedly ends in a sleep anyway was in vain,
// and the next attempt then takes twice as many short sleeps.
class Spin {
 public:
  using Duration = std::chrono::steady_clock::duration;
  static constexpr int most = 4;          // times the shortest
  static constexpr int short_sleep = 16;  // the same
  static constexpr int most_vain = 8;     // sleeps after the longest spin
  static constexpr int most_tries = 64;   // short sleeps before it gets longer

  explicit Spin(Duration shortest) : shortest_(shortest), now_(shortest) {}
  Duration now() const { return now_; }

  void slept(Duration asleep) {
    if (asleep > short_sleep * shortest_) {
      now_ = shortest_;
      tries_ = 0;
    } else if (now_ < most * shortest_) {
      if (++tries_ < wanted_tries_) return;
      tries_ = 0;
      now_ *= 2;
    } else if (++vain_ == most_vain) {
      vain_ = 0;
      now_ = shortest_;
      wanted_tries_ = std::min(2 * wanted_tries_, most_tries);
    }
  }
  // Input came while we looked.
  void paid(Duration idle) {
    if (idle <= shortest_) return;
    vain_ = 0;
    wanted_tries_ = 1;
  }

 private:
  Duration shortest_;
  Duration now_;
  int tries_ = 0;
  int wanted_tries_ = 1;
  int vain_ = 0;
};

class PollPolicy {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class Next { yield, sleep };

  explicit PollPolicy(std::chrono::microseconds idle_spin) : spin_(idle_spin) {}

  // A round ended at `now`; `progress` says whether it found work or was given some.
  Next after_round(TimePoint now, bool progress) {
    if (progress) {
      asleep_ ? spin_.slept(now - asleep_since_) : spin_.paid(now - progress_at_);
      asleep_ = false;
      progress_at_ = now;
    }
    contended_ = contention_.present(now);
    if (contended_) return Next::sleep;
    if (now - progress_at_ < spin_.now()) return Next::yield;
    if (!std::exchange(asleep_, true)) asleep_since_ = now;
    return Next::sleep;
  }

  // As of the last round. In a crowd, spinning only uses up the time slice for which a sleeper is woken
  // early.
  bool contended() const { return contended_; }

  void yielded(TimePoint before, TimePoint after) {
    if (contention_.yielded(before, after)) contended_ = true;
  }

 private:
  Spin spin_;
  CoreContention contention_;
  bool asleep_ = false;  // since then, with no input
  TimePoint asleep_since_{};
  TimePoint progress_at_{};
  bool contended_ = false;
};

}  // namespace weir::waiting
