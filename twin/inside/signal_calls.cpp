#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "twin/inside/clocks.hpp"
#include "twin/inside/held_signals.hpp"
#include "twin/inside/masks.hpp"

namespace weir::twin {

using link::fabric::ThreadState;

void wake_for_signal(pid_t pid, int signal) {
  Arena& all = arena();
  const Ticks at = now();
  for (std::uint32_t p = 0; p < all.processes_used.load(); ++p) {
    ProcessRecord& target = all.processes[p];
    const std::uint32_t number = target.pid.load();
    if (number == 0 || number == ~0u || (pid > 0 && number != static_cast<std::uint32_t>(pid))) continue;
    if (signal == SIGKILL && pid > 0) {
      target.ends.store(1);
      ++all.ends;
      continue;
    }
    for (std::uint32_t i = 0; i < all.threads_used.load(); ++i) {
      ThreadRecord& thread = all.threads[i];
      if (thread.process == p && thread.helper == 0 && &thread != &self() &&
          thread.state.load() == static_cast<std::uint32_t>(ThreadState::waiting) && thread.ready_at > at)
        thread.ready_at = at;
    }
  }
  worked();
}

namespace {

// After a signal was sent. The kernel takes a moment of real time to end what is killed: what the killer sees
// next, as by waitpid(WNOHANG), must not depend on how long, so it goes on when the end is there
// (Coordinator::wait_for_killed).
void signal_sent(pid_t pid, int signal) {
  const int saved = errno;
  wake_for_signal(pid, signal);
  if (signal == SIGKILL && pid > 0 && pid != ::getpid()) wait_for({.kind = Wait::nothing, .what = "kill"});
  errno = saved;
}

int wait_for_one(const sigset_t* set, siginfo_t* info, Ticks deadline) {
  constexpr timespec at_once{};
  for (;;) {
    const int got = WEIR_NEXT(sigtimedwait)(set, info, &at_once);
    if (got >= 0 || errno != EAGAIN) return got;
    if (now() >= deadline) return errno = EAGAIN, -1;
    if (wait_for({.kind = Wait::time, .deadline = deadline, .what = "sigwait"})) return errno = EINTR, -1;
  }
}

}  // namespace

MaskForCall::MaskForCall(const sigset_t* mask) : set_(mask != nullptr) {
  if (set_) ::pthread_sigmask(SIG_SETMASK, mask, &before_);
}

MaskForCall::~MaskForCall() {
  const int saved = errno;
  if (set_) ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = saved;
}

}  // namespace weir::twin

using namespace weir::twin;

extern "C" {

int kill(pid_t pid, int signal) noexcept {
  const int result = WEIR_NEXT(kill)(pid, signal);
  if (result == 0 && signal != 0 && controlled()) signal_sent(pid, signal);
  return result;
}

int sigqueue(pid_t pid, int signal, const union sigval value) noexcept {
  const int result = WEIR_NEXT(sigqueue)(pid, signal, value);
  if (result == 0 && signal != 0 && controlled()) signal_sent(pid, signal);
  return result;
}

int pthread_kill(pthread_t thread, int signal) noexcept {
  const int result = WEIR_NEXT(pthread_kill)(thread, signal);
  if (result == 0 && signal != 0 && controlled()) wake_for_signal(::getpid(), signal);
  return result;
}

int pthread_cancel(pthread_t thread) {
  const int result = WEIR_NEXT(pthread_cancel)(thread);
  if (result == 0 && controlled()) wake_for_signal(::getpid(), SIGRTMIN);
  return result;
}

sighandler_t signal(int number, sighandler_t handler) noexcept {
  if (!controlled()) return WEIR_NEXT(signal)(number, handler);
  struct sigaction action{}, before{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  return ::sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

int pause() {
  if (!controlled()) return WEIR_NEXT(pause)();
  while (!wait_for({.kind = Wait::time, .what = "pause"})) {
  }
  return errno = EINTR, -1;
}

int sigsuspend(const sigset_t* mask) {
  if (!controlled()) return WEIR_NEXT(sigsuspend)(mask);
  // What is pending comes as soon as the mask lets it, and that ends the wait, too.
  sigset_t pending;
  ::sigpending(&pending);
  bool comes = false;
  for (int each = 1; each < NSIG; ++each)
    comes |= ::sigismember(&pending, each) == 1 && ::sigismember(mask, each) == 0;
  const MaskForCall masked(mask);
  while (!comes) comes = wait_for({.kind = Wait::time, .what = "sigsuspend"});
  return errno = EINTR, -1;
}

int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  if (!controlled()) return WEIR_NEXT(sigwaitinfo)(set, info);
  return wait_for_one(set, info, no_time);
}

int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* limit) {
  if (!controlled()) return WEIR_NEXT(sigtimedwait)(set, info, limit);
  return wait_for_one(set, info, limit == nullptr ? no_time : now() + ticks_of(*limit));
}

int sigwait(const sigset_t* set, int* number) {
  if (!controlled()) return WEIR_NEXT(sigwait)(set, number);
  int got;
  do {
    got = wait_for_one(set, nullptr, no_time);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno;
  *number = got;
  return 0;
}
}
