#include "kv/scripts/nudge.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace weir::kv {

namespace {

// Of this thread; read by the signal's handler on the same thread.
thread_local Nudge* volatile current = nullptr;

}  // namespace

Nudge::~Nudge() {
  if (current == this) current = nullptr;
  if (timer_) timer_delete(*timer_);
}

void Nudge::on_signal(int) {
  Nudge* const self = current;
  if (self == nullptr) return;
  self->set_ = false;
  Budget* const budget = self->budget_;
  if (budget == nullptr) return;
  if (lua_State* const lua = budget->running()) lua_sethook(lua, self->hook_, LUA_MASKCOUNT, 1);
  self->set_timer();  // a coroutine may be left before its next instruction, and so its hook be missed
}

// A timer is for one thread.
void Nudge::make_timer() {
  if (timer_) timer_delete(*timer_);
  timer_.reset();
  set_ = false;
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGURG, &action, nullptr) != 0) return;
  sigset_t urgent;
  sigemptyset(&urgent);
  sigaddset(&urgent, SIGURG);
  pthread_sigmask(SIG_UNBLOCK, &urgent, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGURG;
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  timer_t timer{};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) timer_ = timer;
}

void Nudge::watch(Budget* budget) {
  budget_ = budget;
  if (budget == nullptr) return;
  if (current != this) {
    current = this;
    make_timer();
  }
  set_timer();
}

void Nudge::set_timer() {
  if (set_ || !timer_) return;
  constexpr long nanoseconds = interval_ms * 1'000'000L;
  itimerspec once{};
  once.it_value.tv_nsec = nanoseconds;
  set_ = true;
  if (timer_settime(*timer_, 0, &once, nullptr) != 0) set_ = false;
}

}  // namespace weir::kv
