// What rdma_cm says, as a descriptor to sleep on and, without waiting, as calls. Made on first use, never
// closed. Service thread alone.
#pragma once

#include <rdma/rdma_cma.h>

#include <functional>

namespace weir::sockets {

class FarEvents {
 public:
  bool open();
  rdma_event_channel* channel() const { return channel_; }
  // Becomes readable; -1: not made yet.
  int fd() const { return channel_ != nullptr ? channel_->fd : -1; }

  // At most some hundred at once, so that a busy peer keeps nobody here.
  void take_events(const std::function<void(const rdma_cm_event&)>& visit);

 private:
  rdma_event_channel* channel_ = nullptr;
};

}  // namespace weir::sockets
