#include "link/fork_guard.hpp"

#include <pthread.h>

#include <mutex>
#include <vector>

namespace weir::link {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<ForkAware*> all;
};

// Never destroyed: a process may fork after its static destructors have begun.
Registry& registry() {
  static Registry& made = *new Registry;
  return made;
}

void before_fork() {
  registry().mutex.lock();
  for (auto* one : registry().all) one->lock_for_fork();
}

void after_fork_in_parent() {
  for (auto* one : registry().all) one->unlock_after_fork();
  registry().mutex.unlock();
}

void after_fork_in_child() {
  for (auto* one : registry().all) {
    one->abandon_in_child();
    one->unlock_after_fork();
  }
  registry().mutex.unlock();
}

}  // namespace

ForkRegistration::ForkRegistration(ForkAware& who) : who_(who) {
  static std::once_flag once;
  std::call_once(once, [] { ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); });
  const std::scoped_lock hold(registry().mutex);
  registry().all.push_back(&who_);
}

ForkRegistration::~ForkRegistration() {
  const std::scoped_lock hold(registry().mutex);
  std::erase(registry().all, &who_);
}

}  // namespace weir::link
