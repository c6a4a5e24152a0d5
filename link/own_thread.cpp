#include "link/own_thread.hpp"

#include <pthread.h>

#include <csignal>
#include <cstdlib>
#include <future>
#include <memory>
#include <utility>

namespace weir::link {
namespace {

// A thread has its creator's mask.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t most;
    ::sigfillset(&most);
    ::sigdelset(&most, SIGSEGV);
    ::sigdelset(&most, SIGBUS);
    ::pthread_sigmask(SIG_SETMASK, &most, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

void allocate_once() {
  void* volatile first = std::malloc(1);  // volatile: compilers leave out what nobody uses
  std::free(first);
}

}  // namespace

std::thread own_thread(std::function<void()> run) {
  const SignalsBlocked blocked;
  // Shared: the thread may still be in set_value() when we have seen the value.
  const auto allocated = std::make_shared<std::promise<void>>();
  std::thread made([allocated, run = std::move(run)] {
    allocate_once();
    allocated->set_value();
    run();
  });
  allocated->get_future().wait();
  return made;
}

}  // namespace weir::link
