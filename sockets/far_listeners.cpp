#include "sockets/far_listeners.hpp"

#include <netinet/in.h>

namespace weir::sockets {

std::uint32_t FarListeners::listen(rdma_event_channel* channel, const FarAddress& at) {
  if (const std::uint32_t known = own_port(at.address); at.port == 0 && known != 0) return known;
  if (at.port != 0 && listeners_.contains(at)) return at.port;
  if (listeners_.size() >= most) return 0;
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0) return 0;
  sockaddr_storage address = sockaddr_of(at);
  constexpr int backlog = 128;
  if (rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&address)) != 0 || rdma_listen(id, backlog) != 0) {
    rdma_destroy_id(id);  // another process of this host listens there, and refers askers to us
    return 0;
  }
  const std::uint32_t port = ntohs(rdma_get_src_port(id));
  listeners_[{at.address, port}] = id;
  if (at.port == 0) own_ports_[at.address] = port;
  return port;
}

std::uint32_t FarListeners::own_port(const std::array<std::uint8_t, 16>& address) const {
  const auto found = own_ports_.find(address);
  return found == own_ports_.end() ? 0 : found->second;
}

}  // namespace weir::sockets
