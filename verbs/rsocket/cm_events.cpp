#include "verbs/rsocket/cm_events.hpp"

#include <fcntl.h>

#include <cerrno>

namespace weir::rsocket {

std::optional<CmEvent> next_event(rdma_event_channel* channel) {
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel, &event) != 0) return std::nullopt;
  CmEvent taken{event->id, event->event, event->status, {}};
  const auto* data = static_cast<const std::byte*>(event->param.conn.private_data);
  if (data != nullptr) taken.private_data.assign(data, data + event->param.conn.private_data_len);
  rdma_ack_cm_event(event);
  return taken;
}

int errno_of(const CmEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_REJECTED:
      return ECONNREFUSED;
    case RDMA_CM_EVENT_UNREACHABLE:
      return ETIMEDOUT;
    default:
      return event.status < 0 ? -event.status : ECONNABORTED;
  }
}

ChannelPtr open_channel() {
  ChannelPtr channel(rdma_create_event_channel());
  if (!channel) return nullptr;
  if (::fcntl(channel->fd, F_SETFL, ::fcntl(channel->fd, F_GETFL) | O_NONBLOCK) != 0) return nullptr;
  return channel;
}

}  // namespace weir::rsocket
