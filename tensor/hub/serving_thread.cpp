#include "tensor/hub/serving_thread.hpp"

#include <pthread.h>

#include <chrono>
#include <csignal>

namespace weir::tensor {

ServingThread::ServingThread(const char* name) {
  // Signals belong to the program. A thread created while all are blocked receives none.
  struct Blocked {
    Blocked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  };
  {
    const Blocked blocked;  // also ends if no thread can be had
    thread_ = std::thread([this] { serve(); });
  }
  pthread_setname_np(thread_.native_handle(), name);
}

ServingThread::~ServingThread() {
  stop([] {});
}

void ServingThread::serve() {
  io_.run();
  io_.restart();
  io_.run_for(std::chrono::seconds(2));  // returns early once all connections are closed
}

}  // namespace weir::tensor
