// Turns messages from other processes into inputs for the state table; requests make new identifiers.
#include <algorithm>
#include <cerrno>

#include "verbs/cm/agent.hpp"

namespace weir::cm {
namespace {

// Requests are handled elsewhere and never get here.
Input input_of(const CmMessage& message) {
  switch (message.type) {
    case MessageType::mra:
      return Input::mra;
    case MessageType::rep:
      return Input::rep;
    case MessageType::rtu:
      return Input::rtu;
    case MessageType::dreq:
      return Input::dreq;
    case MessageType::drep:
      return Input::drep;
    case MessageType::sidr_rep:
      return message.status == static_cast<std::uint16_t>(SidrStatus::success) ? Input::sidr_accepted
                                                                               : Input::sidr_refused;
    case MessageType::rej:
    case MessageType::req:
    case MessageType::sidr_req:
      break;
  }
  return Input::rej;
}

}  // namespace

void Agent::received(const link::NeighbourPtr& from, link::Message&& raw) {
  auto message = parse(raw.body);
  if (!message) return;  // not one of our messages; the sender's connection will time out or end
  received(from, std::move(message));
}

void Agent::received(const link::NeighbourPtr& from, std::optional<CmMessage> message) {
  const std::scoped_lock hold(mutex_);
  if (message->type == MessageType::req || message->type == MessageType::sidr_req) {
    receive_request(from, std::move(*message));
  } else {
    receive_answer(from, *message);
  }
}

// The identifier that a message is about. The number alone is not enough: the connection must
// be with that neighbour.
Id* Agent::find(const link::NeighbourPtr& from, const CmMessage& message) {
  Id* id = nullptr;
  if (message.remote_id != 0) {
    id = find(message.remote_id);
  } else if (is_remote(from)) {
    id = requested_by(from, message.local_id);
  } else {
    const auto named_by_peer = [&](const auto& entry) {
      return entry.second->neighbour == from && entry.second->remote_id == message.local_id;
    };
    const auto found = std::find_if(ids_.begin(), ids_.end(), named_by_peer);
    if (found != ids_.end()) id = found->second;
  }
  if (id == nullptr || id->neighbour != from) return nullptr;
  if (id->remote_id != 0 && message.local_id != 0 && id->remote_id != message.local_id) return nullptr;
  return id;
}

void Agent::receive_answer(const link::NeighbourPtr& from, const CmMessage& message) {
  Id* id = find(from, message);
  if (id == nullptr) {
    // A number of ours, but not from its peer.
    if (const Id* const other = find(message.remote_id);
        other != nullptr && other->neighbour != from && is_remote(from))
      return packets_->count_dropped(rnic::Dropped::wrong_source);
    // On this host nothing is lost, and the rest of its messages has told the peer.
    const auto answer = answer_of_nobody(message);
    if (!answer || (!is_remote(from) && message.type != MessageType::dreq)) return;
    if (is_unproved(from) && !gate_.may_answer_for_nobody(link::Clock::now()))
      return packets_->count_dropped(rnic::Dropped::unproved);
    (void)send_message(from, *answer);
    return;
  }
  const Input input = input_of(message);
  if (!step(id->state, input)) return repeat_answer(*id, message);
  if (message.local_id != 0) id->remote_id = message.local_id;
  if (input == Input::rep || input == Input::sidr_accepted) id->peers = message;
  if (input == Input::rep) {
    id->mine.initiator_depth = message.responder_resources;
    id->mine.responder_resources = message.initiator_depth;
  }
  apply(*id, input, &message);
  if (id->state == State::closed) forget_ended(*id, Seat::left);
}

// Messages between hosts get lost; the peer then asks for our answer again.
void Agent::repeat_answer(const Id& id, const CmMessage& message) {
  if (!is_remote(id.neighbour)) return;
  std::optional<CmMessage> answer;
  if (message.type == MessageType::rep && id.state == State::established)
    answer = ready_to_use(id);
  else if (id.state == State::timewait)
    answer = answer_of_nobody(message);
  if (answer) (void)send_message(id.neighbour, *answer);
}

// The identifier that the request made. It was sent again because our answer did not arrive, or not yet.
Id* Agent::requested_by(const link::NeighbourPtr& from, std::uint32_t request_id) const {
  const auto found = requested_.find({from.get(), request_id});
  return found == requested_.end() ? nullptr : found->second;
}

// IBTA 12.9.8.3: an MRA is due where the application needs longer than the requester waits, which its
// repeated request shows. One to each request would be half of what an unproved address may get. A REP is
// repeated anyway, and the carrier remembers final answers.
void Agent::repeat_patience(const Id& id) {
  if (id.state != State::req_received && id.state != State::sidr_received) return;
  CmMessage patience;
  patience.type = MessageType::mra;
  patience.local_id = id.local_id;
  patience.remote_id = id.remote_id;
  (void)send_message(id.neighbour, patience);
}

bool Agent::is_unproved(const link::NeighbourPtr& neighbour) {
  const auto* const remote = dynamic_cast<const RemoteHost*>(neighbour.get());
  return remote != nullptr && !remote->is_proved();
}

bool Agent::admits(const link::NeighbourPtr& from, const CmMessage& request) {
  return !is_unproved(from) || gate_.admits(request, link::Clock::now());
}

void Agent::update_half_open(Id& id) {
  const bool waits =
      id.state == State::req_received || id.state == State::rep_sent || id.state == State::sidr_received;
  if (const auto remote = std::dynamic_pointer_cast<RemoteHost>(id.neighbour); remote != nullptr) {
    if (id.state == State::established) remote->prove();
    if (waits && !id.half_open && !remote->is_proved()) {
      id.half_open = true;
      gate_.opened();
    }
  }
  if (!waits && std::exchange(id.half_open, false)) gate_.closed();
}

Id* Agent::listener_for(const CmMessage& request) const {
  Id* wildcard = nullptr;
  for (Id* listener : listeners_) {
    if (static_cast<std::uint16_t>(listener->ps) != request.port_space) continue;
    if (listener->local.port != request.destination.port) continue;
    if (listener->local.same_ip(request.destination)) return listener;
    const bool covers = listener->local.ip == any_v4().ip
                            ? request.destination.is_v4()
                            : listener->local.ip == any_v6().ip &&
                                  (!request.destination.is_v4() || !listener->sharing.v6_only);
    if (covers) wildcard = listener;
  }
  return wildcard;
}

void Agent::refuse_request(const link::NeighbourPtr& from, const CmMessage& request, RejectReason reason) {
  CmMessage answer;
  answer.remote_id = request.local_id;
  if (request.type == MessageType::req) {
    answer.type = MessageType::rej;
    answer.status = static_cast<std::uint16_t>(reason);
  } else {
    const bool no_such_service = reason == RejectReason::invalid_service_id;
    answer.type = MessageType::sidr_rep;
    answer.status =
        static_cast<std::uint16_t>(no_such_service ? SidrStatus::no_such_service : SidrStatus::rejected);
  }
  (void)send_message(from, answer);
}

void Agent::receive_request(const link::NeighbourPtr& from, CmMessage message) {
  if (const Id* const id = requested_by(from, message.local_id)) return repeat_patience(*id);
  if (!admits(from, message)) return packets_->count_dropped(rnic::Dropped::unproved);
  Id* listener = listener_for(message);
  if (listener == nullptr && is_remote(from) && wait_for_listener(from, message)) return;
  const bool datagram = message.type == MessageType::sidr_req;
  if (listener == nullptr || listener->datagram() != datagram)
    return refuse_request(from, message, RejectReason::invalid_service_id);
  if (!datagram && listener->transport() != message.transport)
    return refuse_request(from, message, RejectReason::invalid_transport);
  // These look-ups use tables of this process and block on nobody.
  const auto place = devices_.find(message.destination);
  if (!place) return refuse_request(from, message, RejectReason::invalid_service_id);
  if (on_the_way(from, *listener) >= max_on_the_way || !makes_room(from, *listener))
    return refuse_request(from, message, RejectReason::consumer_defined);
  Id* id = make_passive(*listener, *place, from, std::move(message));

  const auto remote = std::dynamic_pointer_cast<RemoteHost>(from);
  if (remote == nullptr || remote->is_proved()) repeat_patience(*id);

  auto event = std::make_unique<Event>();
  event->id = id;
  event->listen_id = listener;
  event->event = RDMA_CM_EVENT_CONNECT_REQUEST;
  if (datagram) {
    event->set_private_data(id->peers.private_data, sidr_req_private_bytes, event->param.ud.private_data,
                            event->param.ud.private_data_len);
  } else {
    rdma_conn_param& conn = event->param.conn;
    event->set_private_data(id->peers.private_data, req_private_bytes, conn.private_data,
                            conn.private_data_len);
    // The peer's initiator depth is what our responder resources must cover, and the other way round.
    conn.responder_resources = id->peers.initiator_depth;
    conn.initiator_depth = id->peers.responder_resources;
    conn.flow_control = id->peers.flow_control;
    conn.retry_count = id->peers.retry_count;
    conn.rnr_retry_count = id->peers.rnr_retry_count;
    conn.srq = id->peers.srq;
    conn.qp_num = id->peers.qpn;
  }
  id->queued = {listener, listener->requests.enter(source_of(from), *id)};
  push(*listener, std::move(event));
}

// As look_again(), but on the host that received the request. False: do not wait for this one.
bool Agent::wait_for_listener(const link::NeighbourPtr& from, const CmMessage& request) {
  if (limits_.looks < 1) return false;
  const auto entered = waiting_requests_.enter(source_of(from), WaitingRequest{from, request});
  if (entered.leaves)
    refuse_request(entered.leaves->from, entered.leaves->message, RejectReason::invalid_service_id);
  if (entered.number == 0) return false;
  look_for_listener(entered.number, 1);
  return true;
}

void Agent::look_for_listener(std::uint64_t waiting, int looks) {
  link_.at(link::Clock::now() + limits_.look_interval, [this, waiting, looks] {
    const std::scoped_lock hold(mutex_);
    const WaitingRequest* const asks = waiting_requests_.find(waiting);
    if (asks == nullptr) return;
    const bool found = listener_for(asks->message) != nullptr;
    if (!found && looks < limits_.looks) return look_for_listener(waiting, looks + 1);
    const std::optional<WaitingRequest> request = waiting_requests_.leave(waiting);
    if (requested_by(request->from, request->message.local_id) != nullptr) return;
    if (found) return receive_request(request->from, request->message);
    refuse_request(request->from, request->message, RejectReason::invalid_service_id);
  });
}

// False: the newcomer is to be refused.
bool Agent::makes_room(const link::NeighbourPtr& from, Id& listener) {
  const RequestQueue::Room room = listener.requests.room_for(source_of(from));
  if (room.leaves == nullptr) return room.admitted;
  apply(*room.leaves, Input::reject);
  forget_ended(*room.leaves, Seat::taken_over);
  return true;
}

RequestSource Agent::source_of(const link::NeighbourPtr& from) {
  const auto remote = std::dynamic_pointer_cast<RemoteHost>(from);
  if (remote == nullptr) return {.process = from->incarnation()};
  const Addressing& addressing = remote->addressing();
  RequestSource source{.remote = true, .process = addressing.process};
  if (addressing.process != 0) return source;
  source.address = addressing.destination;
  constexpr std::size_t network_bytes = 8;
  const bool v4 = Endpoint{.ip = source.address}.is_v4();
  if (!v4) std::fill(source.address.begin() + network_bytes, source.address.end(), std::uint8_t{0});
  return source;
}

void Agent::leave_queue(Id& request) {
  if (request.queued.listener == nullptr) return;
  request.queued.listener->requests.leave(request.queued.place);
  request.queued = {};
}

// A request that ended before the application took it needs no event, and its identifier nobody. But a
// program that polls the descriptor and then takes an event must not find the channel empty, and wait: the
// last event stays, unless another one follows at once.
void Agent::forget_ended(Id& request, Seat seat) {
  if (request.queued.listener == nullptr) return;
  leave_queue(request);
  const auto event = request.events().withdraw_request(request, seat == Seat::left);
  if (event == nullptr) return;  // taken, or kept
  --event->counted_on->events_outstanding;
  forget(request);
  delete &request;
}

int Agent::on_the_way(const link::NeighbourPtr& from, const Id& listener) const {
  return static_cast<int>(std::ranges::count_if(ids_, [&](const auto& entry) {
    const Id& id = *entry.second;
    const bool asked = id.state == State::req_received || id.state == State::rep_sent;
    return asked && id.neighbour == from && id.local.port == listener.local.port;
  }));
}

Id* Agent::make_passive(const Id& listener, const Devices::Place& place, const link::NeighbourPtr& from,
                        CmMessage message) {
  auto made = std::make_unique<Id>();
  made->set_local(message.destination);
  made->set_remote(message.source);
  this->place(*made, place);
  made->route.addr.addr.ibaddr.dgid = message.source.gid();
  made->channel = listener.channel;
  made->context = listener.context;
  made->ps = listener.ps;
  made->qp_type = listener.qp_type;
  made->srq = listener.srq;
  made->srq_is = Id::Srq::borrowed;
  made->type_of_service = listener.type_of_service;
  made->stage = Stage::passive;
  made->state = message.type == MessageType::sidr_req ? State::sidr_received : State::req_received;
  made->remote_id = message.local_id;
  made->neighbour = from;
  made->peers = std::move(message);
  made->local_id = new_local_id();
  made->mine.psn = starting_psn();
  made->mine.responder_resources = made->peers.initiator_depth;
  made->mine.initiator_depth = made->peers.responder_resources;
  ids_.emplace(made->local_id, made.get());
  requested_[{from.get(), made->remote_id}] = made.get();
  update_half_open(*made);
  start_timer(*made, Timer::answer);
  return made.release();
}

}  // namespace weir::cm
