// The agent of the process, on the link owned by libibverbs.so.1.
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "link/not_cancelled.hpp"
#include "verbs/cm/agent.hpp"
#include "verbs/ibv/private_link.hpp"

namespace weir::cm {

Agent* Agent::instance() {
  static std::mutex mutex;
  static Agent* agent = nullptr;  // lives until exit: identifiers may outlast static destructors
  static pid_t owner = 0;
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
    agent = new Agent(*link, Limits{}, weir_management_port());
    owner = ::getpid();
  }
  return agent;
}

}  // namespace weir::cm
