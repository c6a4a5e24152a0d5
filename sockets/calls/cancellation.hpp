// pthread_cancel(), for calls that we make in the place of the program's own. A call that is no cancellation
// point, such as epoll_ctl(), must not end the thread in a system call of ours: it cannot be unwound and ends
// the process. One that is, such as recv(), ends it before it has done anything, or while it sleeps.
//
// Threading: the calling thread alone; signal handlers may nest.
#pragma once

#include <pthread.h>

namespace weir::sockets {

// The thread is not cancelled while it lives.
class Uncancelled {
 public:
  Uncancelled() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { ::pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  friend class Cancellable;
  int before_ = PTHREAD_CANCEL_ENABLE;
};

// Around a sleep inside of that scope: it may be cancelled, if the program's call may be.
class Cancellable {
 public:
  explicit Cancellable(const Uncancelled& outer) { ::pthread_setcancelstate(outer.before_, nullptr); }
  ~Cancellable() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr); }
  Cancellable(const Cancellable&) = delete;
  Cancellable& operator=(const Cancellable&) = delete;
};

}  // namespace weir::sockets
