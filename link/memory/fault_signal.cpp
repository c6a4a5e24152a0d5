#include "link/memory/fault_signal.hpp"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>

namespace weir::link {
namespace {

// For one signal. Entries are only ever added, under the lock; the handler reads them without it.
struct Menders {
  std::array<std::atomic<FaultMender>, 4> of{};
  bool installed = false;
  struct sigaction previous{};
};

Menders bus_errors, segment_faults;

Menders& menders_of(int signal) { return signal == SIGBUS ? bus_errors : segment_faults; }

void pass_on(const struct sigaction& previous, int signal, siginfo_t* info, void* context) {
  if (previous.sa_flags & SA_SIGINFO) return previous.sa_sigaction(signal, info, context);
  const bool sent = info->si_code <= 0;  // by kill(2): the handler's return repeats no access
  if (previous.sa_handler == SIG_IGN && sent) return;
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(signal);
  struct sigaction by_default{};
  by_default.sa_handler = SIG_DFL;
  ::sigaction(signal, &by_default, nullptr);
  if (sent) ::raise(signal);  // delivered when we return
}

bool mended(const Menders& menders, const siginfo_t& info, const ucontext_t& interrupted) {
  if (info.si_code <= 0) return false;  // sent by a process, not a fault
  sigset_t mask;
  sigemptyset(&mask);
  std::memcpy(&mask, &interrupted.uc_sigmask, _NSIG / 8);  // the kernel fills only this much
  for (const auto& each : menders.of)
    // acquire: pairs with mend_faults(); the mender sees everything that was made before it was added.
    if (const FaultMender mender = each.load(std::memory_order_acquire);
        mender != nullptr && mender(reinterpret_cast<std::uintptr_t>(info.si_addr), mask))
      return true;
  return false;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const Menders& menders = menders_of(signal);
  if (!mended(menders, *info, *static_cast<const ucontext_t*>(context)))
    pass_on(menders.previous, signal, info, context);
  errno = error;
}

}  // namespace

bool mend_faults(int signal, FaultMender mender) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  Menders& menders = menders_of(signal);
  const auto place = std::ranges::find_if(menders.of, [mender](const std::atomic<FaultMender>& each) {
    const FaultMender there = each.load(std::memory_order_relaxed);
    return there == nullptr || there == mender;
  });
  if (place == menders.of.end()) return false;
  place->store(mender, std::memory_order_release);
  if (menders.installed) return true;
  menders.installed = true;
  ::sigaction(signal, nullptr, &menders.previous);
  struct sigaction ours{};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  ::sigaction(signal, &ours, nullptr);
  return true;
}

bool faults_are_caught() {
  sigset_t blocked;
  if (::pthread_sigmask(SIG_BLOCK, nullptr, &blocked) != 0) return false;
  for (const int signal : {SIGBUS, SIGSEGV}) {
    struct sigaction now{};
    if (::sigismember(&blocked, signal) != 0 || ::sigaction(signal, nullptr, &now) != 0) return false;
    if ((now.sa_flags & SA_SIGINFO) == 0 || now.sa_sigaction != on_fault) return false;
  }
  return true;
}

bool faults_are_caught(std::uint64_t now_ns) {
  constexpr std::uint64_t looks_every_ns = 1'000'000;
  thread_local std::uint64_t looked_ns = 0;
  thread_local bool caught = false;
  if (looked_ns == 0 || now_ns - looked_ns >= looks_every_ns) {
    caught = faults_are_caught();
    looked_ns = now_ns;
  }
  return caught;
}

}  // namespace weir::link
