#include "sockets/far_events.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "sockets/calls/system_calls.hpp"
#include "sockets/settings.hpp"

namespace weir::sockets {
namespace {

constexpr int most_at_once = 256;

bool never_waits(int fd) {
  const int flags = system_calls().fcntl(fd, F_GETFL);
  return system_calls().fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

}  // namespace

bool FarEvents::open() {
  if (channel_ != nullptr) return true;
  keep_environment();
  channel_ = rdma_create_event_channel();
  return channel_ != nullptr && never_waits(channel_->fd);
}

void FarEvents::take_events(const std::function<void(const rdma_cm_event&)>& visit) {
  for (int i = 0; channel_ != nullptr && i < most_at_once; ++i) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel_, &event) != 0) break;
    // Acknowledge first, because handling an event may destroy its identifier; copy what is needed.
    rdma_cm_event copy = *event;
    std::array<std::byte, 256> data{};
    if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST || copy.event == RDMA_CM_EVENT_REJECTED) {
      const auto size = std::min<std::size_t>(copy.param.conn.private_data_len, data.size());
      if (copy.param.conn.private_data != nullptr)
        std::memcpy(data.data(), copy.param.conn.private_data, size);
      copy.param.conn.private_data = data.data();
      copy.param.conn.private_data_len =
          static_cast<std::uint8_t>(event->param.conn.private_data == nullptr ? 0 : size);
    }
    rdma_ack_cm_event(event);
    visit(copy);
  }
}

}  // namespace weir::sockets
