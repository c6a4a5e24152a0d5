// rdma_create_ep and its companions: one call makes an identifier with its addresses and queue pair,
// for use with blocking calls.
#include <rdma/rdma_verbs.h>

#include "verbs/cm/api.hpp"

using namespace weir::cm;

namespace {

constexpr int resolve_limit_ms = 2000;

int set_up_passive(Id& id, const rdma_addrinfo& info, ibv_pd* pd, const ibv_qp_init_attr* attr) {
  if (rdma_bind_addr(&id, info.ai_src_addr) != 0) return -1;
  if (attr != nullptr) {
    id.passive_qp = *attr;
    id.passive_qp->qp_type = static_cast<ibv_qp_type>(info.ai_qp_type);
    if (pd != nullptr) id.pd = pd;
  }
  return 0;
}

int set_up_active(Id& id, const rdma_addrinfo& info, ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (rdma_resolve_addr(&id, info.ai_src_addr, info.ai_dst_addr, resolve_limit_ms) != 0) return -1;
  if (rdma_resolve_route(&id, resolve_limit_ms) != 0) return -1;
  if (attr != nullptr) {
    attr->qp_type = static_cast<ibv_qp_type>(info.ai_qp_type);
    if (rdma_create_qp(&id, pd, attr) != 0) return -1;
  }
  const auto data = private_bytes(info.ai_connect, info.ai_connect_len);
  id.connect_data.assign(data.begin(), data.end());
  return 0;
}

}  // namespace

extern "C" {

int rdma_create_ep(rdma_cm_id** id, rdma_addrinfo* info, ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (id == nullptr || info == nullptr) return as_c(EINVAL);
  rdma_cm_id* made = nullptr;
  if (rdma_create_id(nullptr, &made, nullptr, static_cast<rdma_port_space>(info->ai_port_space)) != 0)
    return -1;
  if (info->ai_qp_type != 0) made->qp_type = static_cast<ibv_qp_type>(info->ai_qp_type);
  const bool passive = (info->ai_flags & RAI_PASSIVE) != 0;
  const int result =
      passive ? set_up_passive(Id::of(made), *info, pd, attr) : set_up_active(Id::of(made), *info, pd, attr);
  if (result != 0) {
    const int error = errno;
    rdma_destroy_ep(made);
    return as_c(error);
  }
  *id = made;
  return 0;
}

void rdma_destroy_ep(rdma_cm_id* id) {
  if (id->qp != nullptr) rdma_destroy_qp(id);
  if (id->srq != nullptr && Id::of(id).srq_is != Id::Srq::borrowed) rdma_destroy_srq(id);
  rdma_destroy_id(id);
}

int rdma_get_request(rdma_cm_id* listen, rdma_cm_id** id) {
  Id& listener = Id::of(listen);
  if (!listener.synchronous || id == nullptr) return as_c(EINVAL);
  rdma_cm_event* event = nullptr;
  if (listen->event != nullptr) {
    rdma_ack_cm_event(listen->event);
    listen->event = nullptr;
  }
  if (rdma_get_cm_event(listen->channel, &event) != 0) return -1;
  int error = event->status < 0 ? -event->status : event->status;
  if (error == 0 && static_cast<Event*>(event)->type() != RDMA_CM_EVENT_CONNECT_REQUEST) error = EINVAL;
  if (error == 0 && listener.passive_qp) {
    ibv_qp_init_attr attr = *listener.passive_qp;
    if (rdma_create_qp(event->id, listen->pd, &attr) != 0) {
      error = errno;
      rdma_reject(event->id, nullptr, 0);
    }
  }
  if (error != 0) {
    listen->event = event;
    return as_c(error);
  }
  *id = event->id;
  (*id)->event = event;
  return 0;
}

}  // extern "C"
