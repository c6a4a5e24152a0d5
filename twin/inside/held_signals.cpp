#include "twin/inside/held_signals.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace weir::twin {
namespace {

constexpr std::uint64_t faults =
    bit_of(SIGSEGV) | bit_of(SIGILL) | bit_of(SIGBUS) | bit_of(SIGFPE) | bit_of(SIGTRAP);

std::atomic<std::uint64_t> handled{0};  // signals that have a handler of the program

// Not the C library's: it keeps two signals of its own out of the mask.
std::uint64_t set_mask(std::uint64_t mask) {
  std::uint64_t before = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &before, sizeof mask);
  return before;
}

}  // namespace

HeldSignals::HeldSignals() : before_(set_mask(~faults)) {}

HeldSignals::~HeldSignals() { release(); }

bool HeldSignals::release() {
  if (!held_) return false;
  held_ = false;
  const std::uint64_t mine = handled.load(std::memory_order_relaxed) & ~before_;
  std::uint64_t pending = 0;
  if (mine != 0) ::syscall(SYS_rt_sigpending, &pending, sizeof pending);
  const int saved = errno;
  set_mask(before_);
  errno = saved;
  return (pending & mine) != 0;
}

void handler_set(int signal, const struct sigaction& action) {
  if (signal <= 0 || signal > 64) return;
  const bool is_plain =
      (action.sa_flags & SA_SIGINFO) == 0 && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN);
  if (is_plain)
    handled.fetch_and(~bit_of(signal));
  else
    handled.fetch_or(bit_of(signal));
}

}  // namespace weir::twin
