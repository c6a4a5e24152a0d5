#include "rdma/engine/access_errors.hpp"

#include <fcntl.h>

namespace weir::rdma {

void AccessErrors::watch(ibv_qp* qp) {
  const int fd = qp->context->async_fd;
  const std::lock_guard lock(mutex_);
  if (const int flags = fcntl(fd, F_GETFL); flags >= 0 && (flags & O_NONBLOCK) == 0)
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  watched_[qp] = false;
}

bool AccessErrors::noted(ibv_qp* qp) {
  const std::lock_guard lock(mutex_);
  take_events(qp->context);
  const auto found = watched_.find(qp);
  return found != watched_.end() && found->second;
}

void AccessErrors::forget(ibv_qp* qp) {
  const std::lock_guard lock(mutex_);
  watched_.erase(qp);
}

// An event's queue pair exists until the event is acknowledged.
void AccessErrors::take_events(ibv_context* context) {
  constexpr int most = 256;  // later ones are taken the next time
  for (int i = 0; i < most; ++i) {
    ibv_async_event event{};
    if (ibv_get_async_event(context, &event) != 0) return;
    if (event.event_type == IBV_EVENT_QP_ACCESS_ERR)
      if (const auto found = watched_.find(event.element.qp); found != watched_.end()) found->second = true;
    ibv_ack_async_event(&event);
  }
}

}  // namespace weir::rdma
