#include "verbs/rsocket/interruption.hpp"

#include <signal.h>

#include <algorithm>
#include <array>

namespace weir::rsocket {
namespace {

// Raised by what a thread does itself, so not while it sleeps. Handlers that print where a program crashed
// have no SA_RESTART, and mean nothing by it.
constexpr std::array own_faults = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};

}  // namespace

bool handlers_restart_calls() {
  for (int signal = 1; signal < _NSIG; ++signal) {
    if (std::find(own_faults.begin(), own_faults.end(), signal) != own_faults.end()) continue;
    struct sigaction about{};
    if (::sigaction(signal, nullptr, &about) != 0) continue;  // the C library's own
    const bool handled = about.sa_handler != SIG_DFL && about.sa_handler != SIG_IGN;
    if (handled && (about.sa_flags & SA_RESTART) == 0) return false;
  }
  return true;
}

}  // namespace weir::rsocket
