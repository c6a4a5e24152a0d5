// For tests of "it does not come back before": gives other threads the chance to come back too early. What is
// right must hold whether they used it or not.
//
// Bounded by time too, because where others want the processor each yield costs their time slices.
#pragma once

#include <sched.h>

#include <chrono>

namespace weir {

inline void give_others_time() {
  const auto latest = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  for (int i = 0; i < 2000 && std::chrono::steady_clock::now() < latest; ++i) ::sched_yield();
}

}  // namespace weir
