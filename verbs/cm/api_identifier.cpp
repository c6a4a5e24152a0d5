// rdma_cm's C interface: channels, identifiers, events, addresses. Each function checks what C
// cannot, then calls the agent.
#include <cstring>
#include <new>

#include "verbs/cm/api.hpp"
#include "verbs/cm/cm_message.hpp"
#include "verbs/cm/queue_pair.hpp"
#include "verbs/cm/trace_events.hpp"

using namespace weir::cm;

namespace {

// A CONNECT_RESPONSE on an identifier with a queue pair: makes it ready and establishes the connection.
// False: a later event has overtaken this one and reports the end.
bool finish_connection(Event& event, Id& id) {
  const int error = make_ready(id);
  if (error != 0) {
    agent().reject(id, {});
    make_error(id);
    event.event = RDMA_CM_EVENT_CONNECT_ERROR;
    event.status = -error;
    return true;
  }
  event.event = RDMA_CM_EVENT_ESTABLISHED;
  return agent().apply_local(id, Input::establish) == 0;
}

// A joined group: its messages arrive from now on. False: the application has left it meanwhile.
bool finish_joining(Event& event, Id& id) {
  bool left = false;
  const GroupPlace to{event.param.ud.ah_attr.grh.dgid, static_cast<int>(id.place->gid_index)};
  const int error = attach(id.memberships, to, id.qp, left);
  if (error != 0) {
    event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
    event.status = -error;
  }
  return !left;
}

// Work on the application's thread before it sees the event. False: the event is dropped.
bool prepare(Event& event) {
  Id& id = Id::of(event.id);
  agent().taken(event);
  switch (event.type()) {
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      return id.qp == nullptr || finish_connection(event, id);
    case RDMA_CM_EVENT_CONNECT_REQUEST:
      if (!Id::of(event.listen_id).synchronous || rdma_migrate_id(&id, nullptr) == 0) return true;
      agent().destroy(id);
      return false;
    case RDMA_CM_EVENT_MULTICAST_JOIN:
      return finish_joining(event, id);
    case RDMA_CM_EVENT_REJECTED:
      make_error(id);
      return true;
    default:
      return true;
  }
}

bool is_datagram(rdma_port_space port_space) {
  return port_space == RDMA_PS_UDP || port_space == RDMA_PS_IPOIB;
}

EventChannel* own_channel() {
  EventChannel* channel = EventChannel::open();
  return channel;
}

}  // namespace

namespace weir::cm {

int complete(Id& id) {
  if (!id.synchronous) return 0;
  if (id.event != nullptr) rdma_ack_cm_event(id.event);
  id.event = nullptr;
  if (rdma_get_cm_event(id.channel, &id.event) != 0) return -1;
  const int status = id.event->status;
  if (status == 0) return 0;
  if (static_cast<Event*>(id.event)->type() == RDMA_CM_EVENT_REJECTED) return as_c(ECONNREFUSED);
  return as_c(status < 0 ? -status : status);
}

}  // namespace weir::cm

extern "C" {

rdma_event_channel* rdma_create_event_channel() {
  return Agent::instance() != nullptr ? EventChannel::open() : nullptr;
}

void rdma_destroy_event_channel(rdma_event_channel* channel) {
  EventChannel::destroy(EventChannel::of(channel));
}

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space port_space) {
  if (Agent::instance() == nullptr) return -1;
  if (id == nullptr || !is_port_space(port_space)) return as_c(EINVAL);
  EventChannel* events = channel != nullptr ? &EventChannel::of(channel) : own_channel();
  if (events == nullptr) return -1;
  Id* made = agent().create(*events, context, port_space, is_datagram(port_space) ? IBV_QPT_UD : IBV_QPT_RC);
  made->synchronous = channel == nullptr;
  *id = made;
  return 0;
}

int rdma_destroy_id(rdma_cm_id* id) {
  Id& mine = Id::of(id);
  if (mine.event != nullptr) rdma_ack_cm_event(mine.event);
  EventChannel* own = mine.synchronous ? &mine.events() : nullptr;
  agent().destroy(mine);
  delete own;
  return 0;
}

int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
  Id& mine = Id::of(id);
  if (mine.synchronous && channel == nullptr) return as_c(EINVAL);  // it already has a channel of its own
  EventChannel* to = channel != nullptr ? &EventChannel::of(channel) : own_channel();
  if (to == nullptr) return -1;
  EventChannel* old_own = mine.synchronous ? &mine.events() : nullptr;
  if (mine.synchronous && mine.event != nullptr) {
    rdma_ack_cm_event(mine.event);
    mine.event = nullptr;
  }
  mine.synchronous = channel == nullptr;
  agent().migrate(mine, *to);
  delete old_own;
  return 0;
}

int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  if (channel == nullptr || event == nullptr) return as_c(EINVAL);
  for (;;) {
    EventPtr next = EventChannel::of(channel).take();
    if (!next) return -1;
    if (prepare(*next)) {
      trace(*next);
      *event = next.release();
      return 0;
    }
    agent().acknowledged(*next);
  }
}

int rdma_ack_cm_event(rdma_cm_event* event) {
  if (event == nullptr) return as_c(EINVAL);
  const EventPtr last(static_cast<Event*>(event));
  agent().acknowledged(*last);
  return 0;
}

int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) { return as_c(agent().bind(Id::of(id), address)); }

int rdma_resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* destination, int) {
  if (const int error = agent().resolve_address(Id::of(id), source, destination); error != 0)
    return as_c(error);
  return complete(Id::of(id));
}

int rdma_resolve_route(rdma_cm_id* id, int) {
  if (const int error = agent().resolve_route(Id::of(id)); error != 0) return as_c(error);
  return complete(Id::of(id));
}

int rdma_listen(rdma_cm_id* id, int backlog) { return as_c(agent().listen(Id::of(id), backlog)); }

__be16 rdma_get_src_port(rdma_cm_id* id) { return id->route.addr.src_sin.sin_port; }
__be16 rdma_get_dst_port(rdma_cm_id* id) { return id->route.addr.dst_sin.sin_port; }

ibv_context** rdma_get_devices(int* num_devices) {
  if (Agent::instance() == nullptr) return nullptr;
  const auto& contexts = agent().devices().contexts();
  auto** list = new (std::nothrow) ibv_context*[contexts.size() + 1];
  if (list == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  std::size_t count = 0;
  for (ibv_context* context : contexts) list[count++] = context;
  list[count] = nullptr;
  if (num_devices != nullptr) *num_devices = static_cast<int>(count);
  return list;
}

void rdma_free_devices(ibv_context** list) { delete[] list; }

}  // extern "C"
