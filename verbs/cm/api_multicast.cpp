// rdma_cm's C interface: multicast groups.
#include "verbs/cm/api.hpp"
#include "verbs/cm/multicast.hpp"

using namespace weir::cm;

namespace {

constexpr std::uint32_t multicast_qpn = 0xffffff;  // IBTA 10.5.1: any attached queue pair
constexpr std::uint8_t hop_limit = 1;

EventPtr join_event(Id& id, const Endpoint& address, void* context) {
  auto event = std::make_unique<Event>();
  event->id = &id;
  event->event = RDMA_CM_EVENT_MULTICAST_JOIN;
  rdma_ud_param& ud = event->param.ud;
  ud.private_data = context;
  ud.qp_num = multicast_qpn;
  ud.qkey = RDMA_UDP_QKEY;
  ud.ah_attr.is_global = 1;
  ud.ah_attr.port_num = id.port_num;
  ud.ah_attr.grh.dgid = address.gid();
  ud.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(id.place->gid_index);
  ud.ah_attr.grh.hop_limit = hop_limit;
  ud.ah_attr.grh.traffic_class = id.type_of_service;
  return event;
}

int join(Id& id, const sockaddr* name, bool receives, void* context) {
  const auto address = endpoint_of(name);
  if (!id.place || !id.datagram() || !address || !is_multicast(*address)) return EINVAL;
  {
    const std::scoped_lock hold(id.memberships.mutex);
    if (id.memberships.all.size() >= max_own_events) return ENOMEM;
    id.memberships.all.push_back({*address, receives});
  }
  agent().deliver(id, join_event(id, *address, context));
  return 0;
}

}  // namespace

extern "C" {

int rdma_join_multicast_ex(rdma_cm_id* id, rdma_cm_join_mc_attr_ex* attr, void* context) {
  constexpr std::uint32_t needed = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  if (attr == nullptr || attr->comp_mask != needed) return as_c(ENOSYS);
  const bool receives = attr->join_flags == RDMA_MC_JOIN_FLAG_FULLMEMBER;
  if (!receives && attr->join_flags != RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER) return as_c(EINVAL);
  Id& mine = Id::of(id);
  if (const int error = join(mine, attr->addr, receives, context); error != 0) return as_c(error);
  return complete(mine);
}

int rdma_join_multicast(rdma_cm_id* id, sockaddr* address, void* context) {
  rdma_cm_join_mc_attr_ex attr{};
  attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  attr.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;
  attr.addr = address;
  return rdma_join_multicast_ex(id, &attr, context);
}

int rdma_leave_multicast(rdma_cm_id* id, sockaddr* address) {
  const auto group = endpoint_of(address);
  if (!group) return as_c(EINVAL);
  return as_c(leave(Id::of(id).memberships, *group, id->qp));
}

}  // extern "C"
