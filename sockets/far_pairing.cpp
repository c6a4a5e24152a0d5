#include "sockets/far_pairing.hpp"

#include <algorithm>
#include <utility>

#include "sockets/settings.hpp"

namespace weir::sockets {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds longest_asking{3}, longest_awaited{10}, longest_unknown{2},
    longest_greeting{3};
constexpr std::chrono::milliseconds longest_pause{800};
constexpr int longest_resolving_ms = 1000;

FarRequest::End end_of_request(const Key::End& end) {
  return {.address = end.address, .port = static_cast<std::uint16_t>(end.port)};
}

}  // namespace

Conversation FarPairing::conversation_of(const FarEnd& end, Speaker speaker) const {
  const auto own = end_of_request(end.ends().own()), peer = end_of_request(end.ends().peer());
  const bool asked = end.was_accepted();
  return end.conversation(sealing_key(settings().secret, speaker, asked ? peer : own, asked ? own : peer));
}

void FarPairing::seek(FarEnd& end) {
  if (seats_.contains(&end) || linked_.contains(&end)) return;
  if (!events_.open()) return end.far_failed(Reason::device);
  network_namespace_ = end.ends().key.network_namespace;
  auto made = std::make_unique<Seat>();
  Seat& seat = *made;
  seat.end = &end;
  seats_[&end] = std::move(made);
  if (end.was_accepted()) return await(seat);
  seat.target = {end.ends().peer().address, end.ends().peer().port};
  seat.port = seat.target.port;
  if (refusals_.stand(seat.target, Clock::now())) return fail(seat, Reason::no_peer);
  if (may_ask(seat.target)) ask(seat);
}

void FarPairing::await(Seat& seat) {
  seat.stage = Stage::awaited;
  seat.deadline = Clock::now() + longest_awaited;
  const Key::End& own = seat.end->ends().own();
  const auto port = listeners_.listen(events_.channel(), {own.address, 0});
  seat.end->place().mine().far_port.store(port);
  if (listeners_.listen(events_.channel(), {own.address, own.port}) == 0 && port == 0)
    return fail(seat, Reason::device);
  for (auto& one : unknown_)
    if (one.id != nullptr && answer(one)) one.id = nullptr;
  std::erase_if(unknown_, [](const Unknown& one) { return one.id == nullptr; });
}

bool FarPairing::may_ask(const FarAddress& target) const {
  std::size_t asking = 0;
  bool there = false;
  for (const auto& [end, seat] : seats_) {
    if (seat->stage == Stage::queued || end->was_accepted()) continue;
    ++asking;
    there |= seat->target == target;
  }
  return asking < most_asking && (!there || taking_.contains(target));
}

// Searches from the start each time, because a seat that fails is erased.
void FarPairing::ask_next(const FarAddress& target) {
  for (;;) {
    const auto found = std::ranges::find_if(seats_, [&](const auto& one) {
      return one.second->stage == Stage::queued && one.second->target == target;
    });
    if (found == seats_.end()) return;
    Seat& seat = *found->second;
    if (refusals_.stand(target, Clock::now()))
      fail(seat, Reason::no_peer);
    else if (may_ask(target))
      ask(seat);
    else
      return;
  }
}

void FarPairing::ask(Seat& seat) {
  if (seat.deadline == TimePoint{}) seat.deadline = Clock::now() + longest_asking;
  sockaddr_storage from = sockaddr_of({seat.end->ends().own().address, 0});
  sockaddr_storage to = sockaddr_of({seat.target.address, seat.port});
  if (rdma_create_id(events_.channel(), &seat.id, nullptr, RDMA_PS_TCP) != 0) {
    seat.id = nullptr;
    return fail(seat, Reason::device);
  }
  by_id_[seat.id] = &seat;
  seat.stage = Stage::resolving;
  if (rdma_resolve_addr(seat.id, reinterpret_cast<sockaddr*>(&from), reinterpret_cast<sockaddr*>(&to),
                        longest_resolving_ms) != 0)
    fail(seat, Reason::device);
}

void FarPairing::connect(Seat& seat) {
  seat.link = FarLink::make(table_, seat.end->place(), seat.id, arrivals_, settings().ring_bytes);
  if (!seat.link) return fail(seat, Reason::device);
  const Conversation mine = conversation_of(*seat.end, Speaker::request);
  const auto request = bytes_of(FarRequest{.ring_bytes = settings().ring_bytes,
                                           .asker = end_of_request(seat.end->ends().own()),
                                           .asked = end_of_request(seat.end->ends().peer()),
                                           .sent_16 = mine.sent.after_16,
                                           .received_16 = mine.received.after_16});
  rdma_conn_param parameters{};
  parameters.private_data = request.data();
  parameters.private_data_len = static_cast<std::uint8_t>(request.size());
  parameters.retry_count = 7;
  parameters.rnr_retry_count = 7;
  seat.stage = Stage::connecting;
  if (rdma_connect(seat.id, &parameters) != 0) fail(seat, Reason::device);
}

void FarPairing::drop(Seat& seat) {
  if (seat.id == nullptr) return;
  by_id_.erase(seat.id);
  if (seat.link)
    seat.link.reset();  // destroys the identifier, too
  else
    rdma_destroy_id(seat.id);
  seat.id = nullptr;
}

// Erases the seat.
void FarPairing::fail(Seat& seat, Reason why) {
  drop(seat);
  const FarAddress target = seat.target;
  FarEnd& end = *seat.end;
  const bool asked = !end.was_accepted() && seat.stage != Stage::queued;
  if (asked && why == Reason::no_peer) refusals_.refused(target, Clock::now());
  seats_.erase(&end);
  end.far_failed(why);
  if (!asked) return;
  if (why == Reason::device) return fail_queued(target);
  ask_next(target);
}

void FarPairing::fail_queued(const FarAddress& target) {
  std::vector<Seat*> queued;
  for (const auto& [end, seat] : seats_)
    if (seat->stage == Stage::queued && seat->target == target) queued.push_back(seat.get());
  for (Seat* const seat : queued) fail(*seat, Reason::device);
}

void FarPairing::forget(FarEnd& end) {
  if (const auto it = linked_.find(&end); it != linked_.end()) {
    linked_by_id_.erase(it->second.id);
    linked_.erase(it);
    return;
  }
  const auto found = seats_.find(&end);
  if (found == seats_.end()) return;
  Seat& seat = *found->second;
  const FarAddress target = seat.target;
  drop(seat);
  seats_.erase(found);
  ask_next(target);
}

void FarPairing::refuse(rdma_cm_id* id, std::uint32_t ask_port) {
  const auto data = bytes_of(FarRefusal{.ask_port = static_cast<std::uint16_t>(ask_port)});
  (void)rdma_reject(id, data.data(), static_cast<std::uint8_t>(data.size()));
  rdma_destroy_id(id);
}

void FarPairing::refused(Seat& seat, const rdma_cm_event& event) {
  const std::span data(static_cast<const std::byte*>(event.param.conn.private_data),
                       event.param.conn.private_data_len);
  const auto refusal = event.param.conn.private_data != nullptr ? read_refusal(data) : std::nullopt;
  drop(seat);
  seat.stage = Stage::pausing;
  seat.again_at = Clock::now() + seat.pause;
  seat.pause = std::min(2 * seat.pause, longest_pause);
  // Another process of that host has the connection: ask there once, then where we began again.
  const bool elsewhere = refusal && refusal->ask_port != 0 && seat.port == seat.target.port;
  seat.port = elsewhere ? refusal->ask_port : seat.target.port;
  if (elsewhere) ask(seat);
}

void FarPairing::requested(rdma_cm_id* id, std::span<const std::byte> data) {
  const auto request = read_request(data);
  const sockaddr* const asker = rdma_get_peer_addr(id);
  // Refuse a request for another host's connection, and a request from a network that was not named.
  if (!request || address_bytes(asker) != request->asker.address ||
      !settings().peers.have(request->asker.address))
    return refuse(id, 0);
  Unknown asked{.id = id, .request = *request, .until = Clock::now() + longest_unknown};
  if (answer(asked)) return;
  if (unknown_.size() >= most_unknown) return refuse(id, 0);
  unknown_.push_back(asked);
}

bool FarPairing::answer(const Unknown& asked) {
  const FarRequest& request = asked.request;
  for (const auto& [end, seat] : seats_) {
    if (seat->stage != Stage::awaited || end_of_request(end->ends().own()) != request.asked ||
        end_of_request(end->ends().peer()) != request.asker)
      continue;
    const Conversation theirs{.sent = {.after_16 = request.sent_16},
                              .received = {.after_16 = request.received_16}};
    // Otherwise the connection is another one, or we have not read that far and the asker will ask again.
    if (mirror(conversation_of(*end, Speaker::request), theirs) == Likeness::same)
      accept(*seat, asked);
    else
      refuse(asked.id, 0);
    return true;
  }
  return send_elsewhere(asked);
}

bool FarPairing::send_elsewhere(const Unknown& asked) {
  const auto& [own, peer] = std::pair(asked.request.asked, asked.request.asker);
  const Key::End ours{.address = own.address, .port = own.port},
      theirs{.address = peer.address, .port = peer.port};
  const bool lower = ours < theirs;
  const Key key{
      .low = lower ? ours : theirs, .high = lower ? theirs : ours, .network_namespace = network_namespace_};
  const auto port = table_.far_port_of(key, lower);
  if (port == 0 || port == listeners_.own_port(own.address)) return false;
  refuse(asked.id, port);
  return true;
}

void FarPairing::accept(Seat& seat, const Unknown& asked) {
  seat.link = FarLink::make(table_, seat.end->place(), asked.id, arrivals_, settings().ring_bytes);
  if (!seat.link) {
    refuse(asked.id, 0);
    return fail(seat, Reason::device);
  }
  seat.id = asked.id;
  by_id_[seat.id] = &seat;
  seat.stage = Stage::connecting;
  seat.deadline = Clock::now() + longest_greeting;
  rdma_conn_param parameters{};
  parameters.retry_count = 7;
  parameters.rnr_retry_count = 7;
  if (rdma_accept(seat.id, &parameters) != 0) fail(seat, Reason::device);
}

void FarPairing::greet(Seat& seat) {
  if (seat.stage != Stage::connecting) return;
  seat.stage = Stage::greeting;
  seat.deadline = Clock::now() + longest_greeting;
  const Speaker own = seat.end->was_accepted() ? Speaker::asked : Speaker::asker;
  if (!seat.link->greet(conversation_of(*seat.end, own))) return fail(seat, Reason::device);
  judge(seat);  // the peer's greeting may already be here
}

void FarPairing::judge(Seat& seat) {
  if (!seat.link) return;
  if (seat.link->lost()) return fail(seat, Reason::link_lost);
  if (seat.stage != Stage::greeting || !seat.link->greeted()) return;
  const Speaker peer = seat.end->was_accepted() ? Speaker::asker : Speaker::asked;
  if (mirror(conversation_of(*seat.end, peer), seat.link->greeting()->conversation) != Likeness::same)
    return fail(seat, Reason::other_conversation);
  if (!seat.link->accept_greeting()) return fail(seat, Reason::device);
  linked(seat);
}

// Erases the seat.
void FarPairing::linked(Seat& seat) {
  FarEnd& end = *seat.end;
  const FarAddress target = seat.target;
  const auto ring_bytes = seat.link->greeting()->ring_bytes;
  std::unique_ptr<FarLink> link = std::move(seat.link);
  linked_[&end] = {.id = seat.id, .link = link.get()};
  linked_by_id_[seat.id] = link.get();
  by_id_.erase(seat.id);
  seats_.erase(&end);
  end.far_linked(std::move(link), ring_bytes);
  if (end.was_accepted()) return;
  refusals_.accepted(target);
  if (taking_.size() >= most_taking) taking_.clear();
  taking_.insert(target);
  ask_next(target);
}

void FarPairing::handle(const rdma_cm_event& event) {
  if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    const auto& given = event.param.conn;
    return requested(
        event.id, given.private_data == nullptr
                      ? std::span<const std::byte>{}
                      : std::span(static_cast<const std::byte*>(given.private_data), given.private_data_len));
  }
  if (const auto it = linked_by_id_.find(event.id); it != linked_by_id_.end()) {
    if (event.event == RDMA_CM_EVENT_DISCONNECTED) it->second->peer_left();
    return;
  }
  if (const auto found = by_id_.find(event.id); found != by_id_.end()) handle(*found->second, event);
}

void FarPairing::handle(Seat& seat, const rdma_cm_event& event) {
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (rdma_resolve_route(seat.id, longest_resolving_ms) != 0) fail(seat, Reason::device);
      return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return connect(seat);
    case RDMA_CM_EVENT_ESTABLISHED:
      return greet(seat);
    case RDMA_CM_EVENT_REJECTED:
      return seat.end->was_accepted() ? fail(seat, Reason::no_peer) : refused(seat, event);
    case RDMA_CM_EVENT_DISCONNECTED:
      return fail(seat, Reason::link_lost);
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
      return fail(seat, Reason::no_peer);
    default:
      return;
  }
}

void FarPairing::look() {
  events_.take_events([this](const rdma_cm_event& event) { handle(event); });
  std::vector<Seat*> greeting;
  for (const auto& [end, seat] : seats_)
    if (seat->stage == Stage::greeting) greeting.push_back(seat.get());
  for (Seat* const seat : greeting) judge(*seat);
}

std::optional<FarPairing::TimePoint> FarPairing::deadline() const {
  std::optional<TimePoint> first;
  const auto add = [&](TimePoint time) { first = std::min(first.value_or(time), time); };
  for (const auto& [end, seat] : seats_) {
    if (seat->stage == Stage::queued) continue;
    add(seat->deadline);
    if (seat->stage == Stage::pausing) add(seat->again_at);
  }
  for (const auto& one : unknown_) add(one.until);
  return first;
}

void FarPairing::expire(TimePoint now) {
  std::vector<Seat*> over, again;
  for (const auto& [end, seat] : seats_) {
    if (seat->stage == Stage::queued) continue;
    if (seat->deadline <= now)
      over.push_back(seat.get());
    else if (seat->stage == Stage::pausing && seat->again_at <= now)
      again.push_back(seat.get());
  }
  for (Seat* const seat : again) ask(*seat);
  for (Seat* const seat : over) fail(*seat, Reason::no_peer);
  for (auto& one : unknown_) {
    if (one.until > now) continue;
    refuse(one.id, 0);
    one.id = nullptr;
  }
  std::erase_if(unknown_, [](const Unknown& one) { return one.id == nullptr; });
}

}  // namespace weir::sockets
