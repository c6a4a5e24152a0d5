#include "sockets/calls/held_signals.hpp"

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace weir::sockets {

constinit thread_local HeldSignals held_signals{};

namespace {

// The program's own action for a signal for which the kernel has ours.
struct Known {
  std::atomic<void (*)(int)> handler{nullptr};
  std::atomic<int> flags{0};
};
constinit std::array<Known, NSIG> known{};
constinit std::atomic<SetAction*> kernels_action{nullptr};

constexpr std::array of_faults{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
constexpr std::array of_the_c_library{32, 33};  // cancelling threads, setuid() in all of them

constexpr std::uint64_t bit(int signal) { return std::uint64_t{1} << (signal - 1); }

std::uint64_t blockable() {
  std::uint64_t all = ~std::uint64_t{0};
  for (const int signal : of_faults) all &= ~bit(signal);
  for (const int signal : of_the_c_library) all &= ~bit(signal);
  return all;
}

void set_mask(std::uint64_t mask) { ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask); }

// All signals stay blocked after this handler returns; this signal is pending again.
void hold(int signal, siginfo_t* info, void* context) {
  HeldSignals& mine = held_signals;
  const int before = errno;
  set_mask(~std::uint64_t{0});
  // The kernel's part of the mask; the signal's siginfo_t lies right behind it.
  auto* const mask = &static_cast<ucontext_t*>(context)->uc_sigmask;
  if (!mine.held) std::memcpy(&mine.mask_before, mask, sizeof mine.mask_before);
  mine.held = true;
  const std::uint64_t meanwhile = mine.mask_before | blockable();
  std::memcpy(mask, &meanwhile, sizeof meanwhile);
  if (::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::gettid(), signal, info) != 0)
    ::syscall(SYS_tgkill, ::getpid(), ::gettid(), signal);
  errno = before;
}

void run_or_hold(int signal, siginfo_t* info, void* context) {
  if (held_signals.depth > 0) return hold(signal, info, context);
  const Known& mine = known[static_cast<std::size_t>(signal)];
  auto* const handler = mine.handler.load();
  const int flags = mine.flags.load();
  if (handler == nullptr) return;
  if ((flags & static_cast<int>(SA_RESETHAND)) != 0) {
    struct sigaction none{};
    none.sa_handler = SIG_DFL;
    kernels_action.load()(signal, &none, nullptr);
  }
  if ((flags & SA_SIGINFO) != 0)
    reinterpret_cast<void (*)(int, siginfo_t*, void*)>(reinterpret_cast<void*>(handler))(signal, info,
                                                                                         context);
  else
    handler(signal);
}

bool is_ours(const struct sigaction& action) { return action.sa_sigaction == run_or_hold; }

bool handles(const struct sigaction& action) {
  return !is_ours(action) && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

}  // namespace

void deliver_held_signals() {
  const int before = errno;
  const std::uint64_t mask = held_signals.mask_before;
  held_signals.held = false;
  set_mask(mask);
  errno = before;
}

int set_action(SetAction* call, int signal, const struct sigaction* action, struct sigaction* before) {
  constexpr int kept_by_us = SA_SIGINFO | static_cast<int>(SA_RESETHAND);
  if (signal <= 0 || signal >= NSIG || std::ranges::find(of_faults, signal) != of_faults.end())
    return call(signal, action, before);
  kernels_action.store(call);
  Known& mine = known[static_cast<std::size_t>(signal)];
  auto* const old_handler = mine.handler.load();
  const int old_flags = mine.flags.load();
  struct sigaction ours{};
  const bool takes = action != nullptr && handles(*action);
  if (takes) {
    ours = *action;
    ours.sa_sigaction = run_or_hold;
    ours.sa_flags = (action->sa_flags & ~kept_by_us) | SA_SIGINFO;
    mine.handler.store(action->sa_handler);
    mine.flags.store(action->sa_flags);
  }
  const int result = call(signal, takes ? &ours : action, before);
  if (result != 0 && takes) {
    mine.handler.store(old_handler);
    mine.flags.store(old_flags);
  }
  if (result == 0 && before != nullptr && is_ours(*before)) {
    before->sa_handler = old_handler;
    before->sa_flags = (before->sa_flags & ~kept_by_us) | (old_flags & kept_by_us);
  }
  return result;
}

}  // namespace weir::sockets
