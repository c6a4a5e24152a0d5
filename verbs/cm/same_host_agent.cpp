// The agent of the process, on the link owned by libibverbs.so.1.
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>

#include "link/not_cancelled.hpp"
#include "verbs/cm/agent.hpp"
#include "verbs/ibv/private_link.hpp"

namespace weir::cm {

namespace {

constinit std::mutex mutex;                    // of changes to these
constinit std::atomic<Agent*> agent{nullptr};  // lives until exit: identifiers may outlast static destructors
constinit std::atomic<pid_t> owner{0};

// Without the lock: a signal's handler that calls exit() may have interrupted a thread that holds it.
void leave_at_exit() {
  if (agent != nullptr && owner == ::getpid()) agent.load()->leave();
}

}  // namespace

Agent* Agent::instance() {
  const link::NotCancelled whole;
  const std::scoped_lock hold(mutex);
  // A forked child has its own link. The parent's agent is left untouched: threads that do not exist
  // here may hold its locks.
  if (agent == nullptr || owner != ::getpid()) {
    link::SameHostLink* link = weir_same_host_link();
    if (link == nullptr) {
      if (errno == 0) errno = ENODEV;
      return nullptr;
    }
    // The link has registered its own end, which therefore comes after this one.
    if (owner == 0) std::atexit(leave_at_exit);
    agent = new Agent(*link, Limits{}, weir_management_port());
    owner = ::getpid();
  }
  return agent;
}

}  // namespace weir::cm
