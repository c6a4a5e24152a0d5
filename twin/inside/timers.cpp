// timerfd, alarm and setitimer in virtual time. A timer's descriptor is an eventfd, which reads alike: when
// the timer is due, whichever thread of the process is granted next writes it.
#include "twin/inside/timers.hpp"

#include <sys/eventfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "twin/inside/clocks.hpp"
#include "twin/inside/signal_timers.hpp"

namespace weir::twin {
namespace {

struct Timer {
  int descriptor = -1;
  clockid_t clock = CLOCK_MONOTONIC;
  Ticks due = no_time, interval = 0;
};
constexpr std::size_t max_timers = 64;
std::array<Timer, max_timers> timers;  // used by the thread that has the baton
Timer alarm_timer;

Timer* find(int descriptor) {
  for (Timer& timer : timers)
    if (timer.descriptor == descriptor) return &timer;
  return nullptr;
}

// How often it has expired by now; sets when it is due next.
std::uint64_t expire(Timer& timer) {
  if (timer.due > now()) return 0;
  std::uint64_t times = 1;
  if (timer.interval == 0) {
    timer.due = no_time;
  } else {
    times += (now() - timer.due) / timer.interval;
    timer.due += times * timer.interval;
  }
  return times;
}

itimerspec left_of(const Timer& timer) {
  const Ticks left = timer.due == no_time || timer.due <= now() ? 0 : timer.due - now();
  return {timespec_of(timer.interval), timespec_of(left)};
}

Ticks ticks_of(const timeval& time) { return twin::ticks_of(timespec{time.tv_sec, time.tv_usec * 1000}); }

}  // namespace

void announce_timers() {
  Ticks first = no_time;
  for (const Timer& timer : timers) first = std::min(first, timer.due);
  process().timer_due = first;
  process().alarm_due = std::min(alarm_timer.due, first_signal_timer());
}

void forget_alarms() {
  alarm_timer = {};
  forget_signal_timers();
}

bool run_due_timers() {
  for (Timer& timer : timers) {
    if (timer.descriptor < 0) continue;
    const std::uint64_t times = expire(timer);
    if (times != 0 && ::write(timer.descriptor, &times, sizeof times) < 0) continue;  // only if it is full
  }
  const bool signalled = expire(alarm_timer) != 0;
  const bool sent = run_signal_timers();
  announce_timers();
  if (signalled) {
    sigset_t blocked;
    WEIR_NEXT(pthread_sigmask)(SIG_SETMASK, nullptr, &blocked);
    if (::sigismember(&blocked, SIGALRM) == 1)  // the NIC's own thread: the program's gets it
      ::kill(::getpid(), SIGALRM);
    else
      ::raise(SIGALRM);
    worked();
  }
  return signalled || sent;
}

void timer_closed(int descriptor) {
  Timer* const timer = find(descriptor);
  if (timer == nullptr || descriptor < 0) return;
  *timer = {};
  announce_timers();
}

}  // namespace weir::twin

using namespace weir::twin;

extern "C" {

int timerfd_create(clockid_t clock, int flags) noexcept {
  if (!controlled()) return WEIR_NEXT(timerfd_create)(clock, flags);
  Timer* const timer = find(-1);
  if (timer == nullptr) return errno = EMFILE, -1;
  static_assert(int{TFD_CLOEXEC} == int{EFD_CLOEXEC} && int{TFD_NONBLOCK} == int{EFD_NONBLOCK});
  const int descriptor = ::eventfd(0, flags);
  if (descriptor >= 0) *timer = {.descriptor = descriptor, .clock = clock};
  return descriptor;
}

int timerfd_settime(int descriptor, int flags, const itimerspec* wanted, itimerspec* before) noexcept {
  Timer* const timer = controlled() ? find(descriptor) : nullptr;
  if (timer == nullptr) return WEIR_NEXT(timerfd_settime)(descriptor, flags, wanted, before);
  if (before != nullptr) *before = left_of(*timer);
  // Expirations that nobody has read are forgotten. The descriptor may block.
  std::uint64_t drained;
  if (descriptor_is_ready(descriptor) && ::read(descriptor, &drained, sizeof drained) < 0 && errno != EAGAIN)
    return -1;
  const bool off = wanted->it_value.tv_sec == 0 && wanted->it_value.tv_nsec == 0;
  timer->interval = ticks_of(wanted->it_interval);
  if (off)
    timer->due = no_time;
  else if ((flags & TFD_TIMER_ABSTIME) != 0)
    timer->due = deadline_of(timer->clock, wanted->it_value);
  else
    timer->due = now() + ticks_of(wanted->it_value);
  announce_timers();
  return 0;
}

int timerfd_gettime(int descriptor, itimerspec* left) noexcept {
  Timer* const timer = controlled() ? find(descriptor) : nullptr;
  if (timer == nullptr) return WEIR_NEXT(timerfd_gettime)(descriptor, left);
  *left = left_of(*timer);
  return 0;
}

unsigned alarm(unsigned seconds) noexcept {
  if (!controlled()) return WEIR_NEXT(alarm)(seconds);
  const Ticks left = alarm_timer.due == no_time ? 0 : alarm_timer.due - std::min(alarm_timer.due, now());
  alarm_timer.due = seconds == 0 ? no_time : now() + seconds * ticks_per_s;
  alarm_timer.interval = 0;
  announce_timers();
  return static_cast<unsigned>((left + ticks_per_s - 1) / ticks_per_s);
}

int setitimer(__itimer_which_t which, const itimerval* wanted, itimerval* before) noexcept {
  if (!controlled() || which != ITIMER_REAL) return WEIR_NEXT(setitimer)(which, wanted, before);
  if (before != nullptr) {
    const itimerspec left = left_of(alarm_timer);
    *before = {{left.it_interval.tv_sec, left.it_interval.tv_nsec / 1000},
               {left.it_value.tv_sec, left.it_value.tv_nsec / 1000}};
  }
  const Ticks value = ticks_of(wanted->it_value);
  alarm_timer.due = value == 0 ? no_time : now() + value;
  alarm_timer.interval = ticks_of(wanted->it_interval);
  announce_timers();
  return 0;
}
}
