// A completion queue's channel, for those who sleep until something completes.
//
// An alarm that rang stays audible, its descriptor readable, until it is set again or silenced: nobody
// silences it by merely looking for completions, so whoever sets it, looks once more and then sleeps is
// woken.
//
// Threading: the socket's mutex guards it.
#pragma once

#include <infiniband/verbs.h>

namespace weir::rsocket {

class Alarm {
 public:
  Alarm() = default;
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  int open(ibv_context* device);  // 0 or an errno
  ibv_comp_channel* channel() const { return channel_; }
  int descriptor() const { return channel_->fd; }

  // The next completion of `cq` makes the descriptor readable. True: one had already.
  bool set(ibv_cq* cq);
  // The descriptor is quiet, until it is set again if it rang; then true.
  bool silence();

 private:
  ibv_comp_channel* channel_ = nullptr;
  bool set_ = false;
};

}  // namespace weir::rsocket
