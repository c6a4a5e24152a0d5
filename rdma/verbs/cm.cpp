#include "rdma/verbs/cm.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "rdma/verbs/refusals.hpp"
#include "rdma/verbs/rnr_timer.hpp"
#include "rdma/verbs/verbs_shim.hpp"

namespace weir::rdma {
namespace {

Endpoint endpoint_of(const sockaddr* address) {
  Endpoint endpoint;
  if (address->sa_family == AF_INET)
    std::memcpy(endpoint.data(), address, sizeof(sockaddr_in));
  else if (address->sa_family == AF_INET6)
    std::memcpy(endpoint.data(), address, sizeof(sockaddr_in6));
  return endpoint;
}

// Only for a connected port space: otherwise the union holds something else (rdma_get_cm_event(3)).
bool carries_private_data(rdma_cm_event_type type) {
  return type == RDMA_CM_EVENT_CONNECT_REQUEST || type == RDMA_CM_EVENT_ESTABLISHED;
}

}  // namespace

std::string text(const Endpoint& address) {
  std::ostringstream out;
  out << address;
  return out.str();
}

Result<EventChannel> EventChannel::create() {
  rdma_event_channel* raw = rdma_create_event_channel();
  if (raw == nullptr) return fail_os(Errc::device_error, why_no_events(errno, on_software_nic()), errno);
  EventChannel channel(raw);
  const int flags = fcntl(raw->fd, F_GETFL);
  if (flags < 0 || fcntl(raw->fd, F_SETFL, flags | O_NONBLOCK) < 0)
    return fail_os(Errc::device_error, "cannot make the event channel non-blocking", errno);
  return channel;
}

std::optional<CmEvent> EventChannel::next() {
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel_.get(), &event) != 0) return std::nullopt;
  CmEvent copy{event->event, event->status, event->id, event->listen_id};
  if (carries_private_data(event->event)) {
    const rdma_conn_param& conn = event->param.conn;
    copy.responder_resources = conn.responder_resources;
    copy.initiator_depth = conn.initiator_depth;
    copy.private_data_bytes = static_cast<std::uint8_t>(std::min<std::size_t>(
        conn.private_data != nullptr ? conn.private_data_len : 0, copy.private_data.size()));
    std::copy_n(static_cast<const std::byte*>(conn.private_data), copy.private_data_bytes,
                copy.private_data.begin());
  }
  rdma_ack_cm_event(event);
  return copy;
}

Result<CmId> CmId::create(const EventChannel& channel) {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_TCP) == 0) return CmId(id);
  return fail_os(Errc::device_error, "cannot create an RDMA connection identifier", errno);
}

void CmId::set_ack_timeout(std::chrono::nanoseconds timeout) {
  std::uint8_t exponent = 1;
  while (exponent < 31 && std::chrono::nanoseconds(std::int64_t{4096} << exponent) < timeout) ++exponent;
  rdma_set_option(get(), RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &exponent, sizeof exponent);
}

void CmId::set_rnr_wait(std::chrono::microseconds wait) {
  ibv_qp_attr attributes{};
  attributes.min_rnr_timer = rnr_timer_code(wait);
  ibv_modify_qp(id_->qp, &attributes, IBV_QP_MIN_RNR_TIMER);
}

std::chrono::microseconds CmId::rnr_wait() const {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr unused{};
  const bool told =
      id_->qp != nullptr && ibv_query_qp(id_->qp, &attributes, IBV_QP_MIN_RNR_TIMER, &unused) == 0;
  return told ? rnr_timer(attributes.min_rnr_timer) : std::chrono::microseconds(0);
}

Result<void> CmId::bind(const Endpoint& address) {
  // An IPv6 listener takes IPv6 only: the IPv4 wildcard needs its own listener on the same port.
  int only_its_family = 1;
  rdma_set_option(get(), RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &only_its_family, sizeof only_its_family);
  Endpoint copy = address;
  if (rdma_bind_addr(get(), copy.data()) == 0) return {};
  const int why = errno;
  if (why == EADDRINUSE)
    return fail_os(Errc::address_in_use, "cannot bind RDMA to " + text(address) + "; choose another port",
                   why);
  return fail_os(Errc::address_unresolved,
                 "cannot bind RDMA to " + text(address) + "; no RDMA device has that address", why);
}

Result<void> CmId::listen(int backlog) {
  if (rdma_listen(get(), backlog) == 0) return {};
  const int why = errno;
  return fail_os(why == EADDRINUSE ? Errc::address_in_use : Errc::device_error, "cannot listen for RDMA",
                 why);
}

Endpoint CmId::local() const { return endpoint_of(rdma_get_local_addr(get())); }
Endpoint CmId::remote() const { return endpoint_of(rdma_get_peer_addr(get())); }

}  // namespace weir::rdma
