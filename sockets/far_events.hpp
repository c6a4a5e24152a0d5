// Events of rdma_cm: a descriptor to sleep on, and calls that take events without waiting. Opened on first
// use, never closed. Service thread only.
#pragma once

#include <rdma/rdma_cma.h>

#include <functional>

namespace weir::sockets {

class FarEvents {
 public:
  bool open();
  rdma_event_channel* channel() const { return channel_; }
  // Readable when events are pending; -1: not opened yet.
  int fd() const { return channel_ != nullptr ? channel_->fd : -1; }

  // Takes at most a few hundred events, so that a busy peer does not hold us here.
  void take_events(const std::function<void(const rdma_cm_event&)>& visit);

 private:
  rdma_event_channel* channel_ = nullptr;
};

}  // namespace weir::sockets
