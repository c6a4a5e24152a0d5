#include "verbs/rsocket/alarm.hpp"

#include <fcntl.h>

#include <cerrno>

namespace weir::rsocket {

Alarm::~Alarm() {
  if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
}

int Alarm::open(ibv_context* device) {
  channel_ = ibv_create_comp_channel(device);
  if (channel_ == nullptr) return errno;
  const int flags = ::fcntl(channel_->fd, F_GETFL);
  return ::fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK) == 0 ? 0 : errno;
}

bool Alarm::silence() {
  if (!set_) return false;
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(channel_, &cq, &context) != 0) return false;
  ibv_ack_cq_events(cq, 1);
  set_ = false;
  return true;
}

bool Alarm::set(ibv_cq* cq) {
  const bool rang = silence();
  if (!set_) set_ = ibv_req_notify_cq(cq, 0) == 0;
  return rang;
}

}  // namespace weir::rsocket
