// For tests that a call does not return too early: gives other threads the chance to make it return. A
// correct test result must not depend on whether they use it.
//
// Limited by time too, because on a busy processor each yield costs the time slices of other programs.
#pragma once

#include <sched.h>

#include <chrono>

namespace weir {

inline void give_others_time() {
  const auto latest = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  for (int i = 0; i < 2000 && std::chrono::steady_clock::now() < latest; ++i) ::sched_yield();
}

}  // namespace weir
