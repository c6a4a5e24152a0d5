// timer_create and its like in virtual time. Whichever thread of the process is granted when a timer is due
// sends its signal, or makes the thread that its SIGEV_THREAD asks for.
//
// Threading: only the thread that has the baton.
#include "twin/inside/signal_timers.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <memory>

#include "twin/inside/clocks.hpp"
#include "twin/inside/held_signals.hpp"

namespace weir::twin {
namespace {

struct SignalTimer {
  bool used = false;
  clockid_t clock = CLOCK_MONOTONIC;
  sigevent how{};
  Ticks due = no_time, interval = 0;
  int overrun = 0;  // expirations that its last signal stands for, less one
};
constexpr std::size_t max_signal_timers = 64;
std::array<SignalTimer, max_signal_timers> timers;

SignalTimer* find(timer_t handle) {
  for (SignalTimer& timer : timers)
    if (&timer == handle && timer.used) return &timer;
  return nullptr;
}

struct Notice {
  void (*function)(sigval);
  sigval value;
};

void* notify(void* given) {
  const std::unique_ptr<Notice> notice(static_cast<Notice*>(given));
  notice->function(notice->value);
  return nullptr;
}

void start_thread(const sigevent& how) {
  auto notice = std::make_unique<Notice>(Notice{how.sigev_notify_function, how.sigev_value});
  pthread_t thread;
  if (::pthread_create(&thread, how.sigev_notify_attributes, notify, notice.get()) != 0) return;
  (void)notice.release();  // the thread's
  ::pthread_detach(thread);
}

void send_signal(const sigevent& how) {
  siginfo_t info{};
  info.si_signo = how.sigev_signo;
  info.si_code = SI_TIMER;
  info.si_value = how.sigev_value;
  const pid_t process = ::getpid();
  if (how.sigev_notify == SIGEV_THREAD_ID)
    ::syscall(SYS_rt_tgsigqueueinfo, process, how._sigev_un._tid, how.sigev_signo, &info);
  else
    ::syscall(SYS_rt_sigqueueinfo, process, how.sigev_signo, &info);
  wake_for_signal(process, how.sigev_signo);
}

void expire(SignalTimer& timer, Ticks at) {
  Ticks times = 1;
  if (timer.interval == 0) {
    timer.due = no_time;
  } else {
    times += (at - timer.due) / timer.interval;
    timer.due += times * timer.interval;
  }
  timer.overrun = static_cast<int>(std::min<Ticks>(times - 1, INT_MAX));
}

itimerspec left_of(const SignalTimer& timer) {
  const Ticks left = timer.due == no_time || timer.due <= now() ? 0 : timer.due - now();
  return {timespec_of(timer.interval), timespec_of(left)};
}

}  // namespace

Ticks first_signal_timer() {
  Ticks first = no_time;
  for (const SignalTimer& timer : timers) first = std::min(first, timer.due);
  return first;
}

bool run_signal_timers() {
  const Ticks at = now();
  bool sent = false;
  for (SignalTimer& timer : timers) {
    if (!timer.used || timer.due > at) continue;
    expire(timer, at);
    const sigevent how = timer.how;  // a handler may delete it
    if (how.sigev_notify == SIGEV_THREAD) start_thread(how);
    if (how.sigev_notify == SIGEV_SIGNAL || how.sigev_notify == SIGEV_THREAD_ID) {
      send_signal(how);
      sent = true;
    }
    worked();
  }
  return sent;
}

void forget_signal_timers() { timers = {}; }

}  // namespace weir::twin

using namespace weir::twin;

extern "C" {

int timer_create(clockid_t clock, sigevent* how, timer_t* handle) noexcept {
  if (!controlled()) return WEIR_NEXT(timer_create)(clock, how, handle);
  for (SignalTimer& timer : timers) {
    if (timer.used) continue;
    timer = {.used = true, .clock = clock};
    *handle = &timer;
    if (how != nullptr) {
      timer.how = *how;
    } else {
      timer.how.sigev_notify = SIGEV_SIGNAL;
      timer.how.sigev_signo = SIGALRM;
      timer.how.sigev_value.sival_ptr = *handle;
    }
    return 0;
  }
  return errno = EAGAIN, -1;
}

int timer_settime(timer_t handle, int flags, const itimerspec* wanted, itimerspec* before) noexcept {
  if (!controlled()) return WEIR_NEXT(timer_settime)(handle, flags, wanted, before);
  SignalTimer* const timer = find(handle);
  if (timer == nullptr) return errno = EINVAL, -1;
  if (before != nullptr) *before = left_of(*timer);
  timer->interval = ticks_of(wanted->it_interval);
  timer->overrun = 0;
  if (wanted->it_value.tv_sec == 0 && wanted->it_value.tv_nsec == 0)
    timer->due = no_time;
  else if ((flags & TIMER_ABSTIME) != 0)
    timer->due = deadline_of(timer->clock, wanted->it_value);
  else
    timer->due = now() + ticks_of(wanted->it_value);
  announce_timers();
  return 0;
}

int timer_gettime(timer_t handle, itimerspec* left) noexcept {
  if (!controlled()) return WEIR_NEXT(timer_gettime)(handle, left);
  const SignalTimer* const timer = find(handle);
  if (timer == nullptr) return errno = EINVAL, -1;
  *left = left_of(*timer);
  return 0;
}

int timer_getoverrun(timer_t handle) noexcept {
  if (!controlled()) return WEIR_NEXT(timer_getoverrun)(handle);
  const SignalTimer* const timer = find(handle);
  return timer != nullptr ? timer->overrun : (errno = EINVAL, -1);
}

int timer_delete(timer_t handle) noexcept {
  if (!controlled()) return WEIR_NEXT(timer_delete)(handle);
  SignalTimer* const timer = find(handle);
  if (timer == nullptr) return errno = EINVAL, -1;
  *timer = {};
  announce_timers();
  return 0;
}
}
