// Polls briefly before a sleep, unless polling was useless lately or other threads want the
// core (waiting/spin_policy).
#pragma once

#include <sched.h>

#include <chrono>
#include <utility>

#include "sockets/settings.hpp"
#include "waiting/spin_policy.hpp"

namespace weir::sockets {

using waiting::SpinPolicy;

inline SpinPolicy& thread_spin() {
  static thread_local SpinPolicy policy(settings().spin);
  return policy;
}

inline SpinPolicy::TimePoint& last_look() {
  static thread_local SpinPolicy::TimePoint last;
  return last;
}

inline void begin_looking(SpinPolicy& policy, SpinPolicy::TimePoint now) {
  last_look() = now;
  policy.worked(now);
}

// False: go to sleep.
inline bool look_again(SpinPolicy& policy) {
  constexpr int looks_a_yield = 32;
  static thread_local int looks = 0;
  const auto now = SpinPolicy::TimePoint::clock::now(), before = std::exchange(last_look(), now);
  if (now - before > waiting::CoreContention::long_yield) policy.yielded(before, now);
  if (!policy.look_again(now)) return false;
  if (++looks % looks_a_yield == 0) {
    ::sched_yield();
    policy.yielded(now, SpinPolicy::TimePoint::clock::now());
  } else {
    for (int i = 0; i < 4; ++i) __builtin_ia32_pause();
  }
  return true;
}

}  // namespace weir::sockets
