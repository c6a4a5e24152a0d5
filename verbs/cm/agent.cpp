#include "verbs/cm/agent.hpp"

#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "link/not_cancelled.hpp"
#include "link/random_number.hpp"
#include "rnic/memory/secret_order.hpp"

namespace weir::cm {
namespace {

constexpr std::chrono::milliseconds liveness_limit{1000};

PortOwner self_of(link::SameHostLink& link) {
  const auto self = link.connected(link.slot());
  return {link.slot(), self ? self->incarnation() : 0};
}

hash::SipKey random_key() {
  const std::uint64_t first = link::random_number();
  return {first, link::random_number()};
}

}  // namespace

void Id::set_device(const Devices::Place& found) {
  place = found;
  verbs = found.context;
  port_num = found.port;
  route.addr.addr.ibaddr.sgid = local.gid();
  route.addr.addr.ibaddr.pkey = 0xffff;
}

Agent::Agent(link::SameHostLink& link, Limits limits, verbs::ManagementPort* management)
    : link_(link),
      limits_(limits),
      ports_(link.directory(), self_of(link), [this](const PortOwner& owner) { return lives(owner); }),
      gate_(random_key()),
      number_key_(random_key()),
      next_ephemeral_(static_cast<std::uint16_t>(link::random_number())) {
  if (management != nullptr) {
    packets_ = std::make_unique<PacketCarrier>(
        link_, *management,
        [this](const link::NeighbourPtr& from, CmMessage message) {
          received(from, std::optional(std::move(message)));
        },
        [this](const CmMessage& message) { return owner_of(message); },
        [this](const link::NeighbourPtr& who) { gone(who); });
    watch_ =
        std::make_unique<PeerWatch>(link_, *packets_, [this](const link::NeighbourPtr& who) { gone(who); });
  }
  link_.on_message(link::kind::cm_first, [this](const link::NeighbourPtr& from, link::Message&& message) {
    received(from, std::move(message));
  });
  link_.on_gone([this](const link::NeighbourPtr& who) { gone(who); });
  link_.on_restored([this] { ports_.restore(); });
}

// An identifier that has its device gets that device's default protection domain, so that memory can be
// registered before there is a queue pair.
void Agent::place(Id& id, const Devices::Place& where) {
  id.set_device(where);
  if (id.pd == nullptr) id.pd = devices_.default_pd(where.context);
}

bool Agent::lives(const PortOwner& owner) {
  const auto neighbour = link_.connect(owner.slot, liveness_limit);
  if (neighbour) return (*neighbour)->incarnation() == owner.incarnation;
  return neighbour.error().code != std::errc::no_such_device_or_address;  // a stopped process is still alive
}

// Random, because a packet from another host is believed if it has the right PSN.
std::uint32_t starting_psn() { return link::random_number() & 0xffffff; }

// The upper bits name the owning process: messages from other hosts arrive at any process of an address. The
// lower ones come in a secret order, because a message from another host is believed if it has the right one.
std::uint32_t Agent::new_local_id() {
  for (;;) {
    constexpr unsigned bits = verbs::communication_slot_shift;
    const std::uint32_t drawn = numbers_drawn_++;
    const std::uint32_t lower =
        rnic::in_secret_order(number_key_, drawn >> bits, bits, drawn & ((1u << bits) - 1));
    const std::uint32_t id = std::uint32_t{link_.slot()} << bits | lower;
    if (id != 0 && !ids_.contains(id)) return id;
  }
}

// A listener of ours is found without a look at the file system, which strangers' requests should not cost.
link::Slot Agent::owner_of(const CmMessage& message) {
  const bool request = message.type == MessageType::req || message.type == MessageType::sidr_req;
  if (!request) return static_cast<link::Slot>(message.remote_id >> verbs::communication_slot_shift);
  {
    const std::scoped_lock hold(mutex_);
    if (listener_for(message) != nullptr) return link_.slot();
  }
  const auto listener = ports_.find_listener(message.port_space, message.destination);
  return listener ? listener->slot : link::Slot{0};
}

Id* Agent::create(EventChannel& channel, void* context, rdma_port_space port_space, ibv_qp_type qp_type) {
  auto made = std::make_unique<Id>();
  made->channel = &channel;
  made->context = context;
  made->ps = port_space;
  made->qp_type = qp_type;
  const std::scoped_lock hold(mutex_);
  made->local_id = new_local_id();
  made->mine.psn = starting_psn();
  ids_.emplace(made->local_id, made.get());
  return made.release();
}

void Agent::destroy(Id& id) {
  {
    const std::scoped_lock hold(mutex_);
    apply(id, Input::destroy);
    leave_queue(id);
    forget(id);
    std::erase(listeners_, &id);
  }
  // Nobody can queue an event for it from now on.
  auto withdrawn = id.events().withdraw(id);
  for (const auto& event : withdrawn) {
    if (event->type() == RDMA_CM_EVENT_CONNECT_REQUEST) destroy(Id::of(event->id));
  }
  {
    std::unique_lock hold(mutex_);
    id.events_outstanding -= withdrawn.size();
    acknowledged_.wait(hold, [&] { return id.events_outstanding == 0; });
  }
  const link::NotCancelled whole;
  if (id.served) packets_->stop_serving(*id.binding);
  if (id.heard_of) packets_->leaves(*id.binding);
  if (id.binding) ports_.release(*id.binding);
  delete &id;
}

void Agent::forget(const Id& id) {
  ids_.erase(id.local_id);
  const auto requested = requested_.find({id.neighbour.get(), id.remote_id});
  if (requested != requested_.end() && requested->second == &id) requested_.erase(requested);
}

// exit() may have been called by a signal's handler that interrupted one of our calls: its lock stays taken.
// Identifiers keep their states, because other threads may still use them.
void Agent::leave() {
  constexpr int tries = 50;
  constexpr std::chrono::milliseconds pause{1};
  if (!packets_) return;
  std::unique_lock hold(mutex_, std::try_to_lock);
  for (int i = 0; i < tries && !hold; ++i) {
    std::this_thread::sleep_for(pause);
    (void)hold.try_lock();
  }
  if (!hold) return;
  for (const auto& [local_id, id] : ids_) {
    if (!is_remote(id->neighbour)) continue;
    if (const auto next = step(id->state, Input::destroy)) transmit(*id, next->send);
  }
  packets_->finish();
}

void Agent::migrate(Id& id, EventChannel& to) {
  EventChannel& from = id.events();
  std::unique_lock hold(mutex_);
  id.channel = &to;  // from now on events go to the new channel, behind these
  auto moved = from.withdraw(id);
  const auto count = moved.size();
  for (auto& event : moved) {
    // An identifier that the application has not seen yet has no other events.
    if (event->type() == RDMA_CM_EVENT_CONNECT_REQUEST) Id::of(event->id).channel = &to;
    to.push(std::move(event));
  }
  // Only the events taken so far: the migrating thread may itself be the one to read the new channel.
  const auto when = id.events_acknowledged + (id.events_outstanding - count);
  acknowledged_.wait(hold, [&] { return id.events_acknowledged >= when; });
}

void Agent::taken(const Event& event) {
  if (event.type() != RDMA_CM_EVENT_CONNECT_REQUEST) return;
  const std::scoped_lock hold(mutex_);
  leave_queue(Id::of(event.id));
}

void Agent::acknowledged(const Event& event) {
  {
    const std::scoped_lock hold(mutex_);
    --event.counted_on->events_outstanding;
    ++event.counted_on->events_acknowledged;
  }
  acknowledged_.notify_all();
}

Id* Agent::find(std::uint32_t local_id) {
  const auto found = ids_.find(local_id);
  return found == ids_.end() ? nullptr : found->second;
}

bool Agent::apply(Id& id, Input input, const CmMessage* cause) {
  const link::NotCancelled whole;
  const auto next = step(id.state, input);
  if (!next) return false;
  const State before = std::exchange(id.state, next->next);
  if (id.state == State::established && before != State::established) watch_peer(id);
  update_half_open(id);
  start_timer(id, next->timer);
  transmit(id, next->send);
  report(id, next->report, cause);
  return true;
}

void Agent::start_timer(Id& id, Timer which) {
  if (which == Timer::as_before) return;
  if (id.timer != 0) link_.cancel(id.timer);
  id.timer = 0;
  ++id.timer_round;
  std::chrono::milliseconds limit{};
  switch (which) {
    case Timer::none:
    case Timer::as_before:
      return;
    case Timer::delivery:
      limit = limits_.delivery;
      break;
    case Timer::answer:
      limit = limits_.answer;
      break;
    case Timer::ready:
      limit = id.half_open && gate_.crowded() ? limits_.crowded : limits_.ready;
      break;
    case Timer::disconnect:
      limit = limits_.disconnect;
      break;
    case Timer::timewait:
      limit = limits_.timewait;
      break;
  }
  id.timer = link_.at(link::Clock::now() + limit, [this, local_id = id.local_id, round = id.timer_round] {
    timer_fired(local_id, round);
  });
}

void Agent::timer_fired(std::uint32_t local_id, std::uint32_t round) {
  const std::scoped_lock hold(mutex_);
  Id* id = find(local_id);
  if (id == nullptr || id->timer_round != round) return;
  id->timer = 0;
  apply(*id, Input::timeout);
  if (id->state == State::closed) forget_ended(*id, Seat::left);
}

CmMessage Agent::ready_to_use(const Id& id) {
  CmMessage message;
  message.type = MessageType::rtu;
  message.local_id = id.local_id;
  message.remote_id = id.remote_id;
  return message;
}

// Of processes on this host, another user's too, the end is reported.
std::optional<PeerWatch::Question> Agent::question_about(const Id& id) {
  auto peer = std::dynamic_pointer_cast<RemoteHost>(id.neighbour);
  if (id.state != State::established || peer == nullptr || peer->addressing().process != 0)
    return std::nullopt;
  return PeerWatch::Question{std::move(peer), ready_to_use(id)};
}

// On the link's thread the first question goes out before the application knows of the connection.
void Agent::watch_peer(const Id& id) {
  const auto question = question_about(id);
  if (!question) return;
  if (link_.on_progress_thread())
    watch_->greet(*question, link::Clock::now());
  else
    link_.post([this, question] { watch_->greet(*question, link::Clock::now()); });
  look_later();
}

void Agent::look_later() {
  if (std::exchange(watching_, true)) return;
  link_.at(link::Clock::now() + limits_.peer_interval, [this] { look_after_peers(); });
}

void Agent::look_after_peers() {
  std::vector<PeerWatch::Question> questions;
  {
    const std::scoped_lock hold(mutex_);
    watching_ = false;
    for (const auto& [local_id, id] : ids_) {
      if (auto question = question_about(*id)) questions.push_back(std::move(*question));
    }
    if (!questions.empty()) look_later();
  }
  watch_->ask(questions, link::Clock::now());
}

void Agent::gone(const link::NeighbourPtr& who) {
  const std::scoped_lock hold(mutex_);
  std::vector<Id*> ended;
  for (auto& [local_id, id] : ids_) {
    if (id->neighbour != who) continue;
    apply(*id, Input::peer_gone);
    if (id->state == State::closed) ended.push_back(id);
  }
  for (Id* id : ended) forget_ended(*id, Seat::left);
}

}  // namespace weir::cm
