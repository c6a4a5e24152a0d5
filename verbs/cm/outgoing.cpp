// Turns the application's calls into inputs for the state table, and sends the messages that a Step demands.
#include <cerrno>

#include "link/explain.hpp"
#include "verbs/cm/agent.hpp"
#include "verbs/cm/explanations.hpp"

namespace weir::cm {

link::Result<void> Agent::send_message(const link::NeighbourPtr& to, const CmMessage& message) {
  if (const auto remote = std::dynamic_pointer_cast<RemoteHost>(to)) {
    packets_->send(*remote, message);
    return {};
  }
  return to->send(link::kind::cm_first, encode(message));
}

bool Agent::is_remote(const link::NeighbourPtr& neighbour) {
  return dynamic_cast<const RemoteHost*>(neighbour.get()) != nullptr;
}

int Agent::connect(Id& id, CmMessage mine) {
  if (id.stage != Stage::route_resolved) return EINVAL;
  const std::scoped_lock hold(mutex_);
  mine.type = id.datagram() ? MessageType::sidr_req : MessageType::req;
  mine.local_id = id.local_id;
  mine.port_space = static_cast<std::uint16_t>(id.ps);
  mine.transport = id.transport();
  mine.source = id.local;
  mine.destination = id.remote;
  if (!step(id.state, Input::connect)) return EINVAL;
  id.mine = std::move(mine);
  apply(id, id.datagram() ? Input::lookup : Input::connect);
  return 0;
}

int Agent::accept(Id& id, CmMessage mine) {
  const std::scoped_lock hold(mutex_);
  if (!step(id.state, Input::accept)) return EINVAL;
  mine.type = id.datagram() ? MessageType::sidr_rep : MessageType::rep;
  mine.local_id = id.local_id;
  mine.remote_id = id.remote_id;
  mine.transport = id.transport();
  id.mine = std::move(mine);
  apply(id, Input::accept);
  return 0;
}

int Agent::reject(Id& id, std::span<const std::byte> private_data) {
  const std::scoped_lock hold(mutex_);
  if (!step(id.state, Input::reject)) return EINVAL;
  id.mine.private_data.assign(private_data.begin(), private_data.end());
  apply(id, Input::reject);
  return 0;
}

int Agent::apply_local(Id& id, Input input) {
  const std::scoped_lock hold(mutex_);
  return apply(id, input) ? 0 : EINVAL;
}

bool Agent::end_is_to_be_told(Id& id) {
  const std::scoped_lock hold(mutex_);
  return id.state == State::dreq_sent || id.state == State::dreq_received || id.state == State::timewait;
}

void Agent::transmit(Id& id, Send what) {
  CmMessage message;
  message.local_id = id.local_id;
  message.remote_id = id.remote_id;
  switch (what) {
    case Send::nothing:
      return;
    case Send::req:
    case Send::sidr_req:
      return send_request(id);
    case Send::rep:
    case Send::sidr_accept:
      message = id.mine;
      break;
    case Send::rej_consumer:
      message.type = MessageType::rej;
      message.status = static_cast<std::uint16_t>(RejectReason::consumer_defined);
      // Only a rejection carries private data; withdrawing a REQ or REP does not send theirs.
      if (id.mine.type == MessageType{}) message.private_data = id.mine.private_data;
      break;
    case Send::rej_timeout:
      message.type = MessageType::rej;
      message.status = static_cast<std::uint16_t>(RejectReason::timeout);
      break;
    case Send::sidr_refuse:
      message.type = MessageType::sidr_rep;
      message.status = static_cast<std::uint16_t>(SidrStatus::rejected);
      message.private_data = id.mine.private_data;
      break;
    case Send::rtu:
      message.type = MessageType::rtu;
      break;
    case Send::dreq:
      message.type = MessageType::dreq;
      message.qpn = id.peers.qpn;
      break;
    case Send::drep:
      message.type = MessageType::drep;
      break;
  }
  // A request withdrawn before its delivery has no route. One withdrawn before the peer's number is known
  // is identified by our number.
  if (!id.neighbour || (message.remote_id == 0 && message.type != MessageType::rej)) return;
  // If sending fails, either the neighbour has ended, which we will hear, or a timer covers it.
  (void)send_message(id.neighbour, message);
}

// Finds the listener and connects to it. request_connected() continues.
void Agent::send_request(Id& id) {
  if (packets_ && packets_->leads_to(id.remote)) {
    id.neighbour = packets_->host(id.local, id.remote);
    (void)send_message(id.neighbour, id.mine);
    return;
  }
  const auto owner = ports_.find_listener(static_cast<std::uint16_t>(id.ps), id.remote);
  if (!owner) return ask_other_users(id);
  link_.connect_async(
      owner->slot, limits_.delivery,
      [this, local_id = id.local_id, owner = *owner](const link::Result<link::NeighbourPtr>& got) {
        request_connected(local_id, owner, got);
      });
}

// No listener of our user; a process of another user may be listening.
void Agent::ask_other_users(Id& id) {
  const auto found = [this, local_id = id.local_id](std::uint64_t process) {
    const std::scoped_lock hold(mutex_);
    Id* still = asking(local_id);
    if (still == nullptr) return;
    if (process == 0) return look_again(*still);
    still->neighbour = packets_->host(still->local, still->remote, process);
    (void)send_message(still->neighbour, still->mine);
  };
  const bool asked = packets_ && packets_->find_server(static_cast<std::uint16_t>(id.ps), id.remote, found);
  if (!asked) look_again(id);
}

// The identifier, if it is still looking for its listener.
Id* Agent::asking(std::uint32_t local_id) {
  Id* id = find(local_id);
  const bool asks = id != nullptr && (id->state == State::req_sent || id->state == State::sidr_sent);
  return asks && !id->neighbour ? id : nullptr;
}

// Prints once: a client may retry until its server is up.
void Agent::explain_nobody_listens(const Id& id) {
  static std::atomic_flag said;
  if (link::first_time(said))
    link::explain(
        why_nobody_listens(static_cast<std::uint16_t>(id.ps), id.remote, {.directory = link_.directory()}));
}

// Programs listen anew for their next connection while the client is already connecting (perftest -R does,
// with two connections). Between hosts, address and route resolution take the milliseconds that this needs;
// on one host they take no time.
void Agent::look_again(Id& id) {
  if (++id.looks > limits_.looks) {
    explain_nobody_listens(id);
    apply(id, Input::nobody_listens);
    return;
  }
  link_.at(link::Clock::now() + limits_.look_interval, [this, local_id = id.local_id] {
    const std::scoped_lock hold(mutex_);
    if (Id* still = asking(local_id)) send_request(*still);
  });
}

void Agent::request_connected(std::uint32_t local_id, const PortOwner& owner,
                              const link::Result<link::NeighbourPtr>& got) {
  const bool dead = got ? (*got)->incarnation() != owner.incarnation
                        : got.error().code == std::errc::no_such_device_or_address;
  const std::scoped_lock hold(mutex_);
  Id* id = find(local_id);
  if (id == nullptr || (id->state != State::req_sent && id->state != State::sidr_sent)) return;
  if (dead) {
    explain_nobody_listens(*id);
    apply(*id, Input::nobody_listens);
  } else if (!got) {
    apply(*id, Input::timeout);
  } else {
    id->neighbour = *got;
    if (!send_message(*got, id->mine)) apply(*id, Input::timeout);
  }
}

}  // namespace weir::cm
