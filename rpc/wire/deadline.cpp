#include "rpc/wire/deadline.hpp"

#include <time.h>

namespace weir::rpc {

namespace {

std::chrono::nanoseconds duration_of(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// steady_clock as of the kernel's last tick, plus one tick.
Deadline coarse_now() {
  static const std::chrono::nanoseconds tick = [] {
    timespec resolution{};
    clock_getres(CLOCK_MONOTONIC_COARSE, &resolution);
    return duration_of(resolution);
  }();
  timespec at_tick{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &at_tick);
  return Deadline(duration_of(at_tick) + tick);
}

}  // namespace

// Each call has a deadline at both ends. When hundreds share a write, the exact clock (20.7 ns on machine D,
// this one 2.8) was a twelfth of the cost of a call.
Deadline deadline_in(std::chrono::microseconds timeout) {
  constexpr std::chrono::seconds long_enough{1};
  return deadline_from(timeout < long_enough ? std::chrono::steady_clock::now() : coarse_now(), timeout);
}

}  // namespace weir::rpc
