#include "verbs/cm/trace_events.hpp"

#include <arpa/inet.h>

#include <array>
#include <cstdio>
#include <string>

#include "verbs/ibv/private_link.hpp"

namespace weir::cm {
namespace {

std::string text_of(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return std::string(text.data()).append(":").append(std::to_string(ntohs(v4.sin_port)));
  }
  if (address.sa_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    return std::string("[").append(text.data()).append("]:").append(std::to_string(ntohs(v6.sin6_port)));
  }
  return "nobody";
}

}  // namespace

void trace(const Event& event) {
  if (!weir_trace_logs()) return;
  const rdma_cm_id& id = *event.id;
  std::array<char, 200> text{};
  std::snprintf(text.data(), text.size(), "cm %s id %p, peer %s: status %d",
                rdma_event_str(static_cast<rdma_cm_event_type>(event.type())), static_cast<const void*>(&id),
                text_of(id.route.addr.dst_addr).c_str(), event.status);
  weir_trace_line(id.qp != nullptr ? id.qp->qp_num : 0, text.data());
}

}  // namespace weir::cm
