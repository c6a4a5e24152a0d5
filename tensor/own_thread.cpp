#include "tensor/own_thread.hpp"

#include <pthread.h>

#include <csignal>
#include <utility>

namespace weir::tensor {

std::thread start_own_thread(const char* name, std::function<void()> work) {
  // A thread created while all signals are blocked receives none.
  struct Blocked {
    Blocked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  };
  std::thread thread;
  {
    const Blocked blocked;  // also ends if no thread can be had
    thread = std::thread(std::move(work));
  }
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace weir::tensor
