#include "rnic/between_hosts/packet_side.hpp"

#include <array>
#include <bit>
#include <mutex>
#include <utility>

namespace weir::rnic {
namespace {

constexpr std::uint16_t full_pkey = 0xffff;
constexpr std::uint8_t notification_class = 48 << 2;  // DSCP CS6, as NICs send them
constexpr congestion::DcqcnParameters notification_times;

// For another user's process the kernel vouches for the sender, which is better than an address.
bool addressed(const PacketRoute& out, const ArrivedPacket& arrived) {
  if (out.process != 0 || arrived.process != 0) return out.process == arrived.process;
  return arrived.source == out.destination && arrived.destination == out.source &&
         arrived.interface == out.interface;
}

wire::Service service_of(QpType type) { return type == QpType::rc ? wire::Service::rc : wire::Service::xrc; }

}  // namespace

packet::ResponderAttributes PacketSide::responder_attributes(const PacketPath& path) const {
  return {.service = service_of(qp_.config.type),
          .destination = path.remote.value(),
          .pkey = full_pkey,
          .path_mtu = path.mtu,
          .first_psn = packet::Psn(qp_.attributes.path.receive_psn),
          .min_rnr_timer = qp_.attributes.min_rnr_timer,
          .max_dest_rd_atomic = qp_.attributes.max_dest_rd_atomic};
}

void PacketSide::open(std::shared_ptr<SharedWindow> window) {
  const Path& path = qp_.attributes.path;
  auto made = std::make_unique<PacketPath>(qp_, sends_, path, qp_.attributes.destination);
  const bool connected = qp_.config.type != QpType::xrc_send &&  // takes no requests
                         made->target.connect(qp_.nic.host.peer(qp_.nic.slot, HostPort::Wait::no), qp_.qpn,
                                              made->remote, qp_.config.type);
  made->window = std::move(window);
  if (connected && qp_.config.type == QpType::uc)
    made->unreliable_responder.emplace(made->target, made->mtu, packet::Psn(path.receive_psn));
  else if (connected)
    made->responder.emplace(made->target, responder_attributes(*made));
  const auto gid_words = std::bit_cast<std::array<std::uint64_t, 2>>(path.destination);
  for (std::size_t i = 0; i < gid_words.size(); ++i)
    qp_.ctx->remote_gid[i].store(gid_words[i], std::memory_order_relaxed);
  qp_.ctx->remote_qpn.store(over_packets | made->remote.value(), std::memory_order_seq_cst);
  if (made->route.process == 0) qp_.nic.host.expect_packets(made->route.destination);
  const std::lock_guard lock(lock_);
  path_ = std::move(made);
}

void PacketSide::set(QpState to) {
  if (qp_.config.type == QpType::uc) {
    if (to == QpState::rts && !path_->unreliable_sends)
      path_->unreliable_sends.emplace(qp_.nic.host, path_->route, path_->icrc_out, path_->remote, path_->mtu,
                                      packet::Psn(qp_.attributes.path.send_psn));
    return;
  }
  {
    const std::lock_guard lock(path_->arriving);
    if (path_->responder) path_->responder->set(responder_attributes(*path_));
  }
  if (!sends()) return;
  const packet::RequesterAttributes wanted{.service = service_of(qp_.config.type),
                                           .destination = path_->remote.value(),
                                           .pkey = full_pkey,
                                           .path_mtu = path_->mtu,
                                           .first_psn = packet::Psn(qp_.attributes.path.send_psn),
                                           .timeout = qp_.attributes.timeout,
                                           .retry_cnt = qp_.attributes.retry_cnt,
                                           .rnr_retry = qp_.attributes.rnr_retry,
                                           .max_rd_atomic = qp_.attributes.max_rd_atomic,
                                           .rate = qp_.attributes.rate};
  if (path_->requester)
    path_->requester->set(wanted);
  else if (to == QpState::rts)
    path_->requester.emplace(path_->requests, *path_->window, wanted);
  if (path_->requester && to == QpState::sqd) path_->requester->ask();
}

void PacketSide::close() {
  std::shared_ptr<PacketPath> closed;
  {
    const std::lock_guard lock(lock_);
    closed = std::move(path_);
  }
  if (closed == nullptr) return;
  if (closed->route.process == 0) qp_.nic.host.expect_no_more(closed->route.destination);
  const std::lock_guard lock(closed->arriving);
  closed->requests_left.settle();
  repeat_last_acknowledgement(*closed);
  closed->responder.reset();
  closed->unreliable_responder.reset();
  closed->target.disconnect();
  closed->requester.reset();
  if (closed->window == nullptr) return;
  if (closed->in_line) closed->window->line.leave(qp_.queue_pair);
  if (closed->window->lets_somebody_send()) qp_.nic.host.wake_at(qp_.nic.host.now_ns());
}

void PacketSide::finish() {
  const std::shared_ptr<PacketPath> path = current();
  if (path == nullptr || !path->arriving.lock_soon()) return;
  const std::lock_guard lock(path->arriving, std::adopt_lock);
  repeat_last_acknowledgement(*path);
}

// With `arriving` held. A peer that has missed it sends its request again, and from now on nobody would
// answer. Programs often end right after the last message, and may do so before the thread that received it
// acknowledges it: then the end of the connection would overtake the completion of a send that has arrived.
void PacketSide::repeat_last_acknowledgement(PacketPath& path) {
  if (!path.responder || std::exchange(path.repeated, true)) return;
  const bool may_be_lost = path.route.process == 0;  // not between processes of one host
  const int copies = may_be_lost ? 2 : 1;
  packet::Outgoing packet;
  PacketBatch batch(qp_.nic.host, path.route, path.icrc_out);
  for (int copy = 0; copy < copies; ++copy) {
    if (may_be_lost) path.responder->acknowledge_again();
    if (!path.responder->acknowledges_next() || !path.responder->next_packet(packet)) break;
    batch.add(packet, path.answers_left);
  }
  batch.send();
}

bool PacketSide::others_may_send() const {
  return path_ != nullptr && path_->window != nullptr && path_->window->lets_somebody_send();
}

void PacketSide::peer_gone() {
  if (path_->requester && !path_->requester->failed()) path_->requester->peer_gone();
  if (others_may_send()) qp_.nic.host.wake_at(qp_.nic.host.now_ns());
}

void PacketSide::give_up_sending() {
  if (path_ == nullptr || !path_->requester) return;
  path_->requests_left.settle();
  path_->requester->give_up();
  if (others_may_send()) qp_.nic.host.wake_at(qp_.nic.host.now_ns());
}

UnreliablePackets* PacketSide::unreliable_sends() const {
  return path_ != nullptr && path_->unreliable_sends ? &*path_->unreliable_sends : nullptr;
}

void PacketSide::give_up_arriving() {
  if (path_ == nullptr) return;
  const std::lock_guard lock(path_->arriving);
  path_->target.give_up_send();
  repeat_last_acknowledgement(*path_);
}

std::shared_ptr<PacketPath> PacketSide::current() {
  const std::lock_guard lock(lock_);
  return path_;
}

bool PacketSide::may_send() const {
  const QpState in = qp_.state();
  return path_->requester && (in == QpState::rts || in == QpState::sqd) && !path_->requester->failed();
}

namespace {

// Between processes of one host nothing is gained by runs of several queue pairs.
DepartureStage* may_wait(const PacketPath& path, DepartureStage& stage) {
  return path.route.process == 0 ? &stage : nullptr;
}

std::size_t longest_run(const PacketPath& path, std::uint64_t now_ns) {
  return path.window != nullptr ? path.window->runs.limit(now_ns) : packet::RunLength::longest;
}

// Whether answers to READs arrive when they leave in runs, as their repetition tells.
void judge_runs(PacketPath& path, std::uint64_t sent, std::uint64_t again, std::uint64_t now_ns) {
  if (path.window == nullptr) return;
  if (again > 1)
    path.window->runs.lost(now_ns);
  else if (sent > 1)
    path.window->runs.arrived();
}

}  // namespace

void PacketSide::execute() {
  if (qp_.state() == QpState::err && !sends_.all_executed())
    return sends_.fail(sends_.next(), WcStatus::wr_flush_err);
  if (!may_send()) return;
  PacketPath& path = *path_;
  packet::Requester& requester = *path.requester;
  const std::uint64_t now_ns = qp_.nic.host.now_ns();
  std::array<iovec, max_sge> room;
  packet::Outgoing packet;
  DepartureStage& stage = qp_.nic.departures.here();
  PacketBatch batch(qp_.nic.host, path.route, path.icrc_out, longest_run(path, now_ns),
                    may_wait(path, stage));
  packet.room = room;
  for (bool first = true; requester.next_packet(now_ns, packet); first = false) {
    if (first) acknowledge_in(batch, path);
    if (!batch.add(packet, path.requests_left)) requester.unreadable(packet);
    packet.room = room;
  }
  batch.send();
  count_sends();
  if (requester.failed()) return;
  if (qp_.state() == QpState::sqd && requester.idle()) sends_.drained();
  if (requester.waits_for_window() && !std::exchange(path.in_line, true))
    path.window->line.join(qp_.queue_pair);
  run_timer(now_ns);
}

// A program that has a message may answer it before the thread that received it acknowledges it. Others count
// on the order in which NICs send: on having the completion of a SEND when they have the answer to it.
void PacketSide::acknowledge_in(PacketBatch& batch, PacketPath& path) {
  if (!path.arriving.lock_soon()) return;
  const std::lock_guard lock(path.arriving, std::adopt_lock);
  // What acknowledges the message may lie in the stage of the thread that received it and woke the program,
  // and that thread may still be taking other packets.
  if (!path.answers_left.lies_in(qp_.nic.departures.here())) path.answers_left.settle();
  packet::Outgoing packet;
  if (!path.responder || !path.responder->acknowledges_next() || !path.responder->next_packet(packet)) return;
  batch.add(packet, path.answers_left);
  path.requests_left.follow(path.answers_left);
  count_answers(path, 1, 0);
}

// The timer keeps running when its deadline moves. If it fires early, it is started again.
void PacketSide::run_timer(std::uint64_t now_ns) {
  PacketPath& path = *path_;
  const auto deadline_ns = path.requester->deadline_ns();
  const bool none_runs = path.timer_ns <= now_ns;
  if (deadline_ns && (none_runs || *deadline_ns < path.timer_ns)) {
    path.timer_ns = *deadline_ns;
    qp_.whole.resume_at(*deadline_ns);
  }
}

namespace {

std::uint64_t grown(std::uint64_t now, std::uint64_t& was) { return now - std::exchange(was, now); }

}  // namespace

void PacketSide::count_sends() {
  const packet::RequesterCounts& now = path_->requester->counts();
  packet::RequesterCounts& was = path_->counted_sends;
  qp_.counters.requests_out.add(grown(now.packets, was.packets));
  const std::uint64_t again = grown(now.retransmitted, was.retransmitted);
  qp_.counters.requests_again.add(again);
  qp_.counters.retries.add(again);
  qp_.counters.naks_in.add(grown(now.sequence_naks, was.sequence_naks) +
                           grown(now.fatal_naks, was.fatal_naks) + grown(now.implied_naks, was.implied_naks));
  const std::uint64_t rnrs = grown(now.rnr_naks, was.rnr_naks);
  qp_.counters.rnr_naks_in.add(rnrs);
  qp_.counters.rnrs.add(rnrs);
  qp_.counters.no_responses.add(grown(now.timeouts, was.timeouts));
  qp_.counters.answers_unwanted.add(grown(now.stray, was.stray));
}

// With `arriving` held. `sent` counts answers, `again` the replays among them.
void PacketSide::count_answers(PacketPath& path, std::uint64_t sent, std::uint64_t again) {
  qp_.counters.answers_out.add(sent);
  qp_.counters.answers_again.add(again);
  count_arrived(path, path.responder->counts());
}

void PacketSide::count_arrived(PacketPath& path, const packet::ResponderCounts& now) {
  packet::ResponderCounts& was = path.counted_answers;
  qp_.counters.naks_out.add(grown(now.sequence_naks, was.sequence_naks) +
                            grown(now.fatal_naks, was.fatal_naks));
  qp_.counters.rnr_naks_out.add(grown(now.rnr_naks, was.rnr_naks));
  qp_.counters.requests_repeated.add(grown(now.duplicates, was.duplicates));
  const std::uint64_t outside = grown(now.outside, was.outside);
  qp_.counters.requests_dropped.add(grown(now.early, was.early) + grown(now.dropped, was.dropped) + outside);
  qp_.nic.segment.header().counters.count_drop(Dropped::outside_window, outside);
}

void PacketSide::resume(Turn turn) {
  if (turn == Turn::yes) path_->in_line = false;
  if (!may_send()) return;
  packet::Requester& requester = *path_->requester;
  requester.on_time(qp_.nic.host.now_ns());
  if (path_->window->runs.gave_up()) qp_.nic.host.runs_are_lost(path_->route);
  if (requester.is_unanswered()) qp_.nic.host.path_is_silent(path_->route, path_->remote);
  if (turn == Turn::yes) requester.begin_turn();
  execute();
}

std::optional<Dropped> PacketSide::refusal_of(const ArrivedPacket& arrived) {
  const std::lock_guard lock(lock_);
  if (path_ != nullptr && addressed(path_->route, arrived)) return std::nullopt;
  qp_.counters.requests_dropped.add(1);
  return Dropped::wrong_source;
}

std::shared_ptr<PacketPath> PacketSide::receive(const ArrivedPacket& arrived) {
  std::shared_ptr<PacketPath> path = current();
  if (path == nullptr) return nullptr;  // reset since refusal_of()
  if (arrived.packet.bth.opcode == wire::congestion_notification) {
    qp_.counters.notifications_in.add(1);
    if (path->window) path->window->notified(qp_.nic.host.now_ns());
    return nullptr;
  }
  if (ecn_of(arrived.traffic_class) == congestion_experienced) notify_sender(*path);
  if (packet::Responder::is_answer(arrived.packet)) return path;
  const std::lock_guard lock(path->arriving);
  if (path->responder) path->responder->receive(arrived.packet);
  if (path->unreliable_responder) {
    path->unreliable_responder->receive(arrived.packet);
    count_arrived(*path, path->unreliable_responder->counts());
  }
  return nullptr;
}

void PacketSide::receive_answer(const ArrivedPacket& arrived) {
  if (!may_send()) return;
  path_->requester->receive(qp_.nic.host.now_ns(), arrived.packet);
  count_sends();
}

// A packet from the peer was marked on its way.
void PacketSide::notify_sender(PacketPath& path) {
  qp_.counters.marked_in.add(1);
  {
    const std::lock_guard lock(path.arriving);
    if (!path.notification_point.on_marked(notification_times, qp_.nic.host.now_ns())) return;
  }
  wire::Packet notification;
  notification.bth.opcode = wire::congestion_notification;
  notification.bth.pkey = full_pkey;
  notification.bth.destination = path.remote.value();
  packet::Outgoing out{};
  out.header_bytes = static_cast<std::uint8_t>(wire::encode_headers(notification, 0, out.header));
  PacketRoute route = path.route;
  route.traffic_class = notification_class;
  PacketBatch batch(qp_.nic.host, route, path.icrc_out);
  if (batch.add(out)) batch.send();
  qp_.counters.notifications_out.add(1);
}

void PacketSide::answer(PacketPath& path) {
  const std::lock_guard lock(path.arriving);
  if (!path.responder) return;
  std::array<iovec, max_sge> room;
  packet::Outgoing packet;
  packet.room = room;
  const std::uint64_t now_ns = qp_.nic.host.now_ns();
  PacketBatch batch(qp_.nic.host, path.route, path.icrc_out, longest_run(path, now_ns),
                    may_wait(path, qp_.nic.departures.here()));
  std::uint64_t sent = 0, again = 0;
  while (path.responder->next_packet(packet)) {
    const bool added = batch.add(packet, path.answers_left);
    path.target.end_read();
    sent += added ? 1 : 0;
    again += added && packet.retransmitted ? 1 : 0;
    if (!added) path.responder->unreadable(packet);
    packet.room = room;
  }
  batch.send();
  judge_runs(path, sent, again, now_ns);
  count_answers(path, sent, again);
}

}  // namespace weir::rnic
