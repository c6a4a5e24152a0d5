// Puts a pthread_cancel() of this thread off to the end of a scope.
//
// close, write, sendmsg, waits on a condition: what POSIX calls cancellation points ends a thread that
// somebody has cancelled, in the middle of whatever called it. No call of libibverbs that moves data is such
// a point on a NIC (it rings a doorbell), so programs cancel threads that post and go on with the queue pair.
// Ended between a message's arrival and its completion, the thread would leave a queue pair on which the next
// post waits for ever; ended in a destructor, it takes the process with it. The calls that wait for an event
// (ibv_get_cq_event and its like) are cancellation points, as they are with rdma-core.
//
// Costs no system call.
#pragma once

#include <pthread.h>

namespace weir::link {

class NotCancelled {
 public:
  NotCancelled() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { ::pthread_setcancelstate(before_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace weir::link
