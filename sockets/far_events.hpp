// What rdma_cm and the completion queues of links to other hosts say, as descriptors to sleep on and, without
// waiting, as calls. Made on first use, never closed. Service thread alone.
#pragma once

#include <rdma/rdma_cma.h>

#include <functional>

namespace weir::sockets {

class FarEvents {
 public:
  bool open();
  rdma_event_channel* channel() const { return channel_; }
  // For the completion queues of this identifier's device. Null: there is none, or it is of another device
  // than the first one's.
  ibv_comp_channel* completions_for(rdma_cm_id* id);

  // Descriptors that become readable; -1: none yet.
  int events_fd() const { return channel_ != nullptr ? channel_->fd : -1; }
  int completions_fd() const { return completions_ != nullptr ? completions_->fd : -1; }

  // At most some hundred at once, so that a busy peer keeps nobody here.
  void take_events(const std::function<void(const rdma_cm_event&)>& visit);
  // The context of each completion queue that has something.
  void take_completions(const std::function<void(void*)>& visit);

 private:
  rdma_event_channel* channel_ = nullptr;
  ibv_comp_channel* completions_ = nullptr;
};

}  // namespace weir::sockets
