// A thread looks at what it waits for, for a short time, before it sleeps (poll_budget): the clock, and what
// the kernel says of the thread.
#pragma once

#include <sys/resource.h>

#include <utility>

#include "waiting/cpu_relax.hpp"
#include "waiting/poll_budget.hpp"

namespace weir::waiting {

// Of the calling thread.
struct LookingThread {
  PollBudget::TimePoint latest{};
  long preemptions = 0;  // when that was last asked
};
inline LookingThread& looking_thread() {
  static thread_local LookingThread here;
  return here;
}

// Whether another thread had the core since this was last asked, which costs a system call.
inline bool was_descheduled(LookingThread& here) {
  rusage usage{};
  if (::getrusage(RUSAGE_THREAD, &usage) != 0) return true;
  return std::exchange(here.preemptions, usage.ru_nivcsw) != usage.ru_nivcsw;
}

inline void begin_looking(PollBudget& budget, PollBudget::TimePoint now) {
  LookingThread& here = looking_thread();
  if (here.latest == PollBudget::TimePoint{}) was_descheduled(here);
  here.latest = now;
  budget.begin(now);
}

// False: go to sleep.
inline bool look_again(PollBudget& budget) {
  constexpr std::chrono::microseconds longest_look{25};  // a look takes a fraction of one
  LookingThread& here = looking_thread();
  const auto now = PollBudget::TimePoint::clock::now(), before = std::exchange(here.latest, now);
  if (const auto gap = now - before; gap > longest_look) {
    if (was_descheduled(here))
      budget.descheduled(now, gap);
    else
      budget.interrupted(gap);
  }
  if (!budget.look_again(now)) return false;
  for (int i = 0; i < 4; ++i) cpu_relax();
  return true;
}

}  // namespace weir::waiting
