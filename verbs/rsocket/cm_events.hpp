// What a stream needs of the connection manager's events, each acknowledged when it is taken; and the
// ownership of its objects.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace weir::rsocket {

struct CmEvent {
  rdma_cm_id* id;
  int type;
  int status;
  std::vector<std::byte> private_data;
};
// The channel is O_NONBLOCK; nothing: there is none now.
std::optional<CmEvent> next_event(rdma_event_channel* channel);

// What connect() reports for an event that ended it.
int errno_of(const CmEvent& event);

struct DestroyId {
  void operator()(rdma_cm_id* id) const { rdma_destroy_id(id); }
};
using IdPtr = std::unique_ptr<rdma_cm_id, DestroyId>;
struct DestroyChannel {
  void operator()(rdma_event_channel* channel) const { rdma_destroy_event_channel(channel); }
};
using ChannelPtr = std::unique_ptr<rdma_event_channel, DestroyChannel>;
ChannelPtr open_channel();  // O_NONBLOCK; null and errno

}  // namespace weir::rsocket
