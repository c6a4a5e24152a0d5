// Turns each Report into the event that the kernel's rdma_cm would give the application.
#include <cerrno>
#include <cstring>

#include "verbs/cm/agent.hpp"

namespace weir::cm {
namespace {

void fill_response(Event& event, const CmMessage& rep) {
  rdma_conn_param& conn = event.param.conn;
  event.set_private_data(rep.private_data, rep_private_bytes, conn.private_data, conn.private_data_len);
  conn.responder_resources = rep.initiator_depth;
  conn.initiator_depth = rep.responder_resources;
  conn.flow_control = rep.flow_control;
  conn.rnr_retry_count = rep.rnr_retry_count;
  conn.srq = rep.srq;
  conn.qp_num = rep.qpn;
}

void fill_lookup_answer(Event& event, const Id& id, const CmMessage& answer) {
  rdma_ud_param& ud = event.param.ud;
  event.set_private_data(answer.private_data, sidr_rep_private_bytes, ud.private_data, ud.private_data_len);
  ud.qp_num = answer.qpn;
  ud.qkey = answer.qkey;
  ud.ah_attr.is_global = 1;
  ud.ah_attr.port_num = id.port_num;
  ud.ah_attr.grh.dgid = id.remote.gid();
  ud.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(id.place->gid_index);
  ud.ah_attr.grh.hop_limit = 64;
  ud.ah_attr.grh.traffic_class = id.type_of_service;
}

// A refusal's private data always fills its field (IBA 12.6.7.2, 12.11.2), also where no message brought it:
// over a wire the peer's host would have sent one.
void fill_rejection(Event& event, std::span<const std::byte> private_data) {
  rdma_conn_param& conn = event.param.conn;
  event.set_private_data(private_data, rej_private_bytes, conn.private_data, conn.private_data_len);
}

void fill_lookup_refusal(Event& event, std::span<const std::byte> private_data) {
  rdma_ud_param& ud = event.param.ud;
  event.set_private_data(private_data, sidr_rep_private_bytes, ud.private_data, ud.private_data_len);
}

}  // namespace

void Agent::push(Id& id, EventPtr event) {
  event->counted_on = &id;
  ++id.events_outstanding;
  id.events().push(std::move(event));
}

void Agent::deliver(Id& id, EventPtr event) {
  const std::scoped_lock hold(mutex_);
  push(id, std::move(event));
}

int Agent::tell(Id& id, int type, int status, std::uint64_t argument) {
  auto event = std::make_unique<Event>();
  event->id = &id;
  event->set_type(type);
  event->status = status;
  // Newer headers have `uint64_t arg` in this union.
  std::memcpy(&event->param, &argument, sizeof argument);
  const std::scoped_lock hold(mutex_);
  if (id.events_outstanding >= max_own_events) return ENOBUFS;
  push(id, std::move(event));
  return 0;
}

void Agent::report(Id& id, Report what, const CmMessage* cause) {
  if (what == Report::nothing) return;
  auto event = std::make_unique<Event>();
  event->id = &id;
  switch (what) {
    case Report::nothing:
      return;
    case Report::response:
      event->event = RDMA_CM_EVENT_CONNECT_RESPONSE;
      fill_response(*event, id.peers);
      break;
    case Report::rejected_by_peer:
      event->event = RDMA_CM_EVENT_REJECTED;
      event->status = cause->status;
      fill_rejection(*event, cause->private_data);
      break;
    case Report::rejected_consumer:
      event->event = RDMA_CM_EVENT_REJECTED;
      event->status = static_cast<int>(RejectReason::consumer_defined);
      fill_rejection(*event, {});
      break;
    case Report::rejected_no_service:
      event->event = RDMA_CM_EVENT_REJECTED;
      event->status = static_cast<int>(RejectReason::invalid_service_id);
      fill_rejection(*event, {});
      break;
    case Report::unreachable_timeout:
      event->event = RDMA_CM_EVENT_UNREACHABLE;
      event->status = -ETIMEDOUT;
      break;
    case Report::unreachable_refused:
      event->event = RDMA_CM_EVENT_UNREACHABLE;
      event->status = cause->status;
      fill_lookup_refusal(*event, cause->private_data);
      break;
    case Report::unreachable_no_service:
      event->event = RDMA_CM_EVENT_UNREACHABLE;
      event->status = static_cast<int>(SidrStatus::no_such_service);
      fill_lookup_refusal(*event, {});
      break;
    case Report::established:
      event->event = RDMA_CM_EVENT_ESTABLISHED;
      break;
    case Report::lookup_answered:
      event->event = RDMA_CM_EVENT_ESTABLISHED;
      fill_lookup_answer(*event, id, id.peers);
      break;
    case Report::disconnected:
      event->event = RDMA_CM_EVENT_DISCONNECTED;
      break;
    case Report::timewait_exit:
      event->event = RDMA_CM_EVENT_TIMEWAIT_EXIT;
      break;
  }
  push(id, std::move(event));
}

}  // namespace weir::cm
