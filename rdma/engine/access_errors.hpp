// Which queue pairs ended because their peer was refused access to our memory.
//
// A device says so by an asynchronous event of its context (IBV_EVENT_QP_ACCESS_ERR); the completions only
// say that the queue pair was flushed. Whoever asks takes all events that wait there, also those of queue
// pairs that belong to other engines, and notes them.
//
// The context's descriptor is made non-blocking: its events are nobody else's business in a program that uses
// rdma/. Threading: any; all engines of a program share one.
#pragma once

#include <infiniband/verbs.h>

#include <mutex>
#include <unordered_map>

namespace weir::rdma {

class AccessErrors {
 public:
  // From now on an error of that queue pair is noted.
  void watch(ibv_qp* qp);
  // Whether there was one.
  bool noted(ibv_qp* qp);
  // Before the queue pair is destroyed.
  void forget(ibv_qp* qp);

 private:
  void take_events(ibv_context* context);

  std::mutex mutex_;
  std::unordered_map<ibv_qp*, bool> watched_;
};

}  // namespace weir::rdma
