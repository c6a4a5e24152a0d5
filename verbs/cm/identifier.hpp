// An rdma_cm_id, and the connection manager's own state for it.
//
// Threading: what the application may see (the rdma_cm_id itself) is written before an event about it is
// queued, or in the application's own calls. `state` and everything below it is guarded by the agent's mutex;
// the peer's values are written under that mutex before the event that reports them.
#pragma once

#include <rdma/rdma_cma.h>

#include <memory>
#include <optional>

#include "link/same_host.hpp"
#include "verbs/cm/cm_message.hpp"
#include "verbs/cm/connection_state.hpp"
#include "verbs/cm/devices.hpp"
#include "verbs/cm/endpoint.hpp"
#include "verbs/cm/event_channel.hpp"
#include "verbs/cm/multicast.hpp"
#include "verbs/cm/port_space.hpp"
#include "verbs/cm/requests/request_queue.hpp"

namespace weir::cm {

enum class Stage : std::uint8_t { unbound, bound, address_resolved, route_resolved, listening, passive };

struct Id : rdma_cm_id {
  Id() : rdma_cm_id{} {}
  static Id& of(rdma_cm_id* id) { return *static_cast<Id*>(id); }
  EventChannel& events() const { return EventChannel::of(channel); }
  bool datagram() const { return qp_type == IBV_QPT_UD; }
  Transport transport() const {
    if (qp_type == IBV_QPT_UC) return Transport::unreliable;
    const bool extended = qp_type == IBV_QPT_XRC_SEND || qp_type == IBV_QPT_XRC_RECV;
    return extended ? Transport::extended : Transport::reliable;
  }

  void set_local(const Endpoint& endpoint) {
    local = endpoint;
    store(endpoint, route.addr.src_storage);
  }
  void set_remote(const Endpoint& endpoint) {
    remote = endpoint;
    store(endpoint, route.addr.dst_storage);
  }
  void set_device(const Devices::Place& found);

  // A request shares its listener's SRQ. An XRC SRQ may complete into `recv_cq`, which was made for that.
  enum class Srq : std::uint8_t { own, borrowed, completes_into_recv_cq } srq_is = Srq::own;
  bool synchronous = false;  // owns its channel, and calls wait for their event
  Stage stage = Stage::unbound;
  Endpoint local, remote;
  std::optional<Devices::Place> place;
  std::optional<Binding> binding;
  bool served = false;    // a listener that other users find
  bool heard_of = false;  // and that other hosts' requests come to at once
  Sharing sharing;
  std::uint8_t type_of_service = 0;
  std::optional<std::uint8_t> ack_timeout;
  ibv_sa_path_rec path{};
  ibv_ece local_ece{};
  Memberships memberships;
  std::optional<ibv_qp_init_attr> passive_qp;  // rdma_create_ep: for each request that rdma_get_request takes
  // A private data given to rdma_create_ep through its rdma_addrinfo.
  std::vector<std::byte> connect_data;

  // rdma_resolve_addrinfo's answer until it is fetched.
  std::unique_ptr<rdma_addrinfo, void (*)(rdma_addrinfo*)> resolved{nullptr, nullptr};

  std::uint32_t local_id = 0;
  State state = State::idle;
  std::uint32_t remote_id = 0;
  link::NeighbourPtr neighbour;
  bool half_open = false;  // a request of an unproved address, not yet established or refused
  int looks = 0;           // for a listener, in vain
  std::uint64_t timer = 0;
  std::uint32_t timer_round = 0;  // a timer that fires late for an earlier round does nothing
  RequestQueue requests;          // of a listener
  // Where its CONNECT_REQUEST waits to be taken.
  struct Queued {
    Id* listener = nullptr;
    RequestQueue::Place place;
  } queued;
  std::size_t events_outstanding = 0;     // queued or not yet acknowledged
  std::uint64_t events_acknowledged = 0;  // ever
  CmMessage mine;                         // our REQ or REP, lookup or its answer
  CmMessage peers;
};

// Of a new connection.
std::uint32_t starting_psn();

}  // namespace weir::cm
