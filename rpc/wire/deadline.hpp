// The time at which a call ends if no answer has come.
#pragma once

#include <chrono>

namespace weir::rpc {

using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline no_deadline = Deadline::max();

// `timeout` from `now` on; no deadline if that is beyond the end of time.
template <class Duration>
Deadline deadline_from(Deadline now, Duration timeout) {
  return timeout < std::chrono::duration_cast<Duration>(no_deadline - now) ? now + timeout : no_deadline;
}

// `timeout` from now on. From a second on by the clock that the kernel sets at its ticks, which is much
// cheaper to read: up to a tick later (4 ms at 250 Hz), and sooner only by what a hypervisor held a tick
// back.
Deadline deadline_in(std::chrono::microseconds timeout);

}  // namespace weir::rpc
