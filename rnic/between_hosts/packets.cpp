// A queue pair whose peer is on another host: packets in and out, where the others execute their requests
// themselves.
//
// Whoever posts sends the first packets, up to the window; whoever receives answers
// (Adapter::receive_packets) and sends what the window then lets through.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <utility>

#include "rnic/adapter.hpp"
#include "rnic/between_hosts/packet_batch.hpp"
#include "rnic/between_hosts/packet_path.hpp"

namespace weir::rnic {
namespace {

constexpr std::uint16_t full_pkey = 0xffff;
constexpr std::uint8_t notification_class = 48 << 2;  // DSCP CS6, as NICs send them
constexpr congestion::DcqcnParameters notification_times;

// Of another user's process the kernel says who it is, which is more than an address.
bool addressed(const PacketRoute& out, const ArrivedPacket& arrived) {
  if (out.process != 0 || arrived.process != 0) return out.process == arrived.process;
  return arrived.source == out.destination && arrived.destination == out.source &&
         arrived.interface == out.interface;
}

// Never for long: its holder may be the application between ibv_wr_start and ibv_wr_complete. What is dropped
// then is a lost packet like any other.
bool lock_soon(SpinLock& lock) {
  constexpr int spins = 200, yields = 50;
  for (int tries = 0; tries < spins + yields; ++tries) {
    if (lock.try_lock()) return true;
    if (tries < spins)
      cpu_relax();
    else
      sched_yield();
  }
  return false;
}

}  // namespace

// To rtr. Under the send lock.
void QueuePair::open_packets() {
  const Path& path = attributes_.path;
  auto made = std::make_unique<PacketPath>(*this, path, attributes_.destination);
  const bool connected =
      made->target.connect(nic_.host().peer(nic_.slot(), HostPort::Wait::no), qp_.qpn, made->remote);
  if (qp_.config.type == QpType::rc) made->window = nic_.packet_window(path.destination, path.process);
  if (connected && qp_.config.type == QpType::uc)
    made->unreliable_responder.emplace(made->target, made->mtu, packet::Psn(path.receive_psn));
  if (connected && qp_.config.type == QpType::rc)
    made->responder.emplace(
        made->target, packet::ResponderAttributes{.destination = made->remote.value(),
                                                  .pkey = full_pkey,
                                                  .path_mtu = made->mtu,
                                                  .first_psn = packet::Psn(path.receive_psn),
                                                  .min_rnr_timer = attributes_.min_rnr_timer,
                                                  .max_dest_rd_atomic = attributes_.max_dest_rd_atomic});
  initiator_slot_.store(nic_.slot(), std::memory_order_relaxed);
  const auto gid_words = std::bit_cast<std::array<std::uint64_t, 2>>(path.destination);
  for (std::size_t i = 0; i < gid_words.size(); ++i)
    qp_.ctx->remote_gid[i].store(gid_words[i], std::memory_order_relaxed);
  qp_.ctx->remote_qpn.store(over_packets | made->remote.value(), std::memory_order_seq_cst);
  poll_packets();
  const std::lock_guard lock(packets_lock_);
  packets_ = std::move(made);
}

void QueuePair::poll_packets() {
  if (on_packets_.load(std::memory_order_relaxed) || on_packets_.exchange(true)) return;
  qp_.config.send_cq->on_packets.fetch_add(1, std::memory_order_relaxed);
  qp_.config.recv_cq->on_packets.fetch_add(1, std::memory_order_relaxed);
}

// What modify changed, as far as both halves go by it.
void QueuePair::set_packets(QpState to) {
  if (qp_.config.type == QpType::uc) {
    if (to == QpState::rts && !packets_->unreliable_sends)
      packets_->unreliable_sends.emplace(nic_.host(), packets_->route, packets_->icrc_out, packets_->remote,
                                         packets_->mtu, packet::Psn(attributes_.path.send_psn));
    return;
  }
  {
    const std::lock_guard lock(packets_->arriving);
    if (packets_->responder)
      packets_->responder->set({.destination = packets_->remote.value(),
                                .pkey = full_pkey,
                                .path_mtu = packets_->mtu,
                                .first_psn = packet::Psn(attributes_.path.receive_psn),
                                .min_rnr_timer = attributes_.min_rnr_timer,
                                .max_dest_rd_atomic = attributes_.max_dest_rd_atomic});
  }
  const packet::RequesterAttributes wanted{.destination = packets_->remote.value(),
                                           .pkey = full_pkey,
                                           .path_mtu = packets_->mtu,
                                           .first_psn = packet::Psn(attributes_.path.send_psn),
                                           .timeout = attributes_.timeout,
                                           .retry_cnt = attributes_.retry_cnt,
                                           .rnr_retry = attributes_.rnr_retry,
                                           .max_rd_atomic = attributes_.max_rd_atomic};
  if (packets_->requester)
    packets_->requester->set(wanted);
  else if (to == QpState::rts)
    packets_->requester.emplace(packets_->sends, *packets_->window, wanted);
}

// To reset. Under the send lock; whoever receives has either not begun with it, or is through.
void QueuePair::close_packets() {
  if (on_packets_.exchange(false)) {
    qp_.config.send_cq->on_packets.fetch_sub(1, std::memory_order_relaxed);
    qp_.config.recv_cq->on_packets.fetch_sub(1, std::memory_order_relaxed);
  }
  std::shared_ptr<PacketPath> closed;
  {
    const std::lock_guard lock(packets_lock_);
    closed = std::move(packets_);
  }
  if (closed == nullptr) return;
  const std::lock_guard lock(closed->arriving);
  closed->responder.reset();
  closed->unreliable_responder.reset();
  closed->target.disconnect();
  closed->requester.reset();
}

// The process of another user that we were connected to ended. Nobody else is believed to be it.
void QueuePair::process_gone(std::uint64_t process) {
  const std::shared_ptr<PacketPath> path = packets();
  if (path == nullptr || path->route.process != process) return;
  send_lock_.lock();
  bool lost = false;
  if (path == packets_ && state() >= QpState::rtr && state() != QpState::err) {
    if (path->requester && !path->requester->failed()) path->requester->peer_gone();
    lost = state() != QpState::err;  // nothing was outstanding, so no failed WQE says it
    if (lost) enter_error();
  }
  unlock_sends();
  announce_unpolled();
  if (lost) nic_.host().async_event(AsyncEvent::qp_fatal, this, nullptr);
}

// Of a message that began to arrive the rest is not taken any more.
void QueuePair::give_up_arriving() {
  if (packets_ == nullptr) return;
  const std::lock_guard lock(packets_->arriving);
  packets_->target.give_up_send();
}

std::shared_ptr<PacketPath> QueuePair::packets() {
  const std::lock_guard lock(packets_lock_);
  return packets_;
}

std::uint32_t QueuePair::may_send_up_to() const {
  switch (state()) {
    case QpState::rts:
      return sq_.doorbell;
    case QpState::sqd:
      return packets_->requester->begun();
    default:
      return sq_.executed.load(std::memory_order_relaxed);
  }
}

bool QueuePair::sends_packets() const {
  const QpState in = state();
  return packets_->requester && (in == QpState::rts || in == QpState::sqd) && !packets_->requester->failed();
}

// UC. In its turn, as execute_here() has it.
Outcome QueuePair::send_unreliable(const SendWqe& wqe, const Gather& payload) {
  if (!packets_->unreliable_sends) return Outcome::done;  // lost
  const auto packets = packets_->unreliable_sends->add(wqe, payload);
  if (!packets) return Outcome::local_fault;
  qp_.counters.requests_out.add(*packets);
  return Outcome::done;
}

// Under the send lock: what the window lets go.
void QueuePair::execute_packets() {
  if (state() == QpState::err && sq_.executed.load(std::memory_order_relaxed) != sq_.doorbell)
    return fail_send(sq_.at(sq_.executed.load(std::memory_order_relaxed)), WcStatus::wr_flush_err);
  if (!sends_packets()) return;
  PacketPath& path = *packets_;
  packet::Requester& requester = *path.requester;
  const std::uint64_t now_ns = nic_.host().now_ns();
  std::array<iovec, max_sge> room;
  packet::Outgoing packet;
  PacketBatch batch(nic_.host(), path.route, path.icrc_out);
  packet.room = room;
  while (requester.next_packet(now_ns, packet)) {
    if (!batch.add(packet)) requester.unreadable(packet);
    packet.room = room;
  }
  batch.send();
  count_sends();
  if (requester.failed()) return;
  if (state() == QpState::sqd && requester.idle()) drained();
  const bool waits = !requester.idle() || requester.waits_for_window();
  if (waits && !std::exchange(path.noted, true)) nic_.note_parked(*this);
  run_timer(now_ns);
}

// Under the send lock. A timer is not stopped when its deadline moves; one that ends early starts the next.
void QueuePair::run_timer(std::uint64_t now_ns) {
  PacketPath& path = *packets_;
  const auto deadline_ns = path.requester->deadline_ns();
  const bool none_runs = path.timer_ns <= now_ns;
  if (deadline_ns && (none_runs || *deadline_ns < path.timer_ns)) {
    path.timer_ns = *deadline_ns;
    nic_.host().wake_at(*deadline_ns);
  }
}

namespace {

std::uint64_t grown(std::uint64_t now, std::uint64_t& was) { return now - std::exchange(was, now); }

}  // namespace

// Under the send lock.
void QueuePair::count_sends() {
  const packet::RequesterCounts& now = packets_->requester->counts();
  packet::RequesterCounts& was = packets_->counted_sends;
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

// By whoever receives packets. `sent`, `again`: answers, and of these replays.
void QueuePair::count_answers(PacketPath& path, std::uint64_t sent, std::uint64_t again) {
  qp_.counters.answers_out.add(sent);
  qp_.counters.answers_again.add(again);
  count_arrived(path, path.responder->counts());
}

void QueuePair::count_arrived(PacketPath& path, const packet::ResponderCounts& now) {
  packet::ResponderCounts& was = path.counted_answers;
  qp_.counters.naks_out.add(grown(now.sequence_naks, was.sequence_naks) +
                            grown(now.fatal_naks, was.fatal_naks));
  qp_.counters.rnr_naks_out.add(grown(now.rnr_naks, was.rnr_naks));
  qp_.counters.requests_repeated.add(grown(now.duplicates, was.duplicates));
  qp_.counters.requests_dropped.add(grown(now.early, was.early) + grown(now.dropped, was.dropped));
}

// From a timer or a poll. True: something is still on its way.
bool QueuePair::resume_packets() {
  if (!sends_packets()) return packets_->noted = false;
  const std::uint64_t now_ns = nic_.host().now_ns();
  packet::Requester& requester = *packets_->requester;
  const auto deadline_ns = requester.deadline_ns();
  const bool due = deadline_ns && *deadline_ns <= now_ns;
  if (due) requester.on_time(now_ns);
  packets_->noted = true;  // by our caller, who lists us again if we say so
  if (due || requester.waits_for_window() || requester.begun() != may_send_up_to())
    execute_packets();
  else
    run_timer(now_ns);
  if (!sends_packets()) return packets_->noted = false;
  return packets_->noted = !requester.idle() || requester.waits_for_window();
}

// Not under the send lock. The caller has found the packet whole, and it names us.
void QueuePair::receive_packet(const ArrivedPacket& arrived) {
  qp_.counters.packets_in.add(1);
  if (qp_.config.type == QpType::ud) return receive_datagram(arrived);
  const std::shared_ptr<PacketPath> path = packets();
  if (path == nullptr || !addressed(path->route, arrived)) return qp_.counters.requests_dropped.add(1);
  if (arrived.packet.bth.opcode == wire::congestion_notification) {
    qp_.counters.notifications_in.add(1);
    if (path->window) path->window->notified(nic_.host().now_ns());
    return;
  }
  if (ecn_of(arrived.traffic_class) == congestion_experienced) notify_sender(*path);
  if (packet::Responder::is_answer(arrived.packet)) {
    if (!lock_soon(send_lock_)) return qp_.counters.requests_dropped.add(1);
    if (path == packets_ && sends_packets()) {
      packets_->requester->receive(nic_.host().now_ns(), arrived.packet);
      count_sends();
    }
    return unlock_sends();
  }
  const std::lock_guard lock(path->arriving);
  if (path->responder) path->responder->receive(arrived.packet);
  if (!path->unreliable_responder) return;
  path->unreliable_responder->receive(arrived.packet);
  count_arrived(*path, path->unreliable_responder->counts());
}

// A packet of the peer's was marked on its way.
void QueuePair::notify_sender(PacketPath& path) {
  qp_.counters.marked_in.add(1);
  {
    const std::lock_guard lock(path.arriving);
    if (!path.notification_point.on_marked(notification_times, nic_.host().now_ns())) return;
  }
  wire::Packet notification;
  notification.bth.opcode = wire::congestion_notification;
  notification.bth.pkey = full_pkey;
  notification.bth.destination = path.remote.value();
  packet::Outgoing out{};
  out.header_bytes = static_cast<std::uint8_t>(wire::encode_headers(notification, 0, out.header));
  PacketRoute route = path.route;
  route.traffic_class = notification_class;
  PacketBatch batch(nic_.host(), route, path.icrc_out);
  if (batch.add(out)) batch.send();
  qp_.counters.notifications_out.add(1);
}

// Behind a batch of arrived packets: its answers, and what they let go.
void QueuePair::answer_packets() {
  const std::shared_ptr<PacketPath> path = packets();
  if (path == nullptr) return;
  {
    const std::lock_guard lock(path->arriving);
    std::array<iovec, max_sge> room;
    packet::Outgoing packet;
    packet.room = room;
    PacketBatch batch(nic_.host(), path->route, path->icrc_out);
    std::uint64_t sent = 0, again = 0;
    while (path->responder && path->responder->next_packet(packet)) {
      const bool added = batch.add(packet);
      path->target.end_read();
      sent += added ? 1 : 0;
      again += added && packet.retransmitted ? 1 : 0;
      if (!added) path->responder->unreadable(packet);
      packet.room = room;
    }
    batch.send();
    if (path->responder) count_answers(*path, sent, again);
  }
  if (!lock_soon(send_lock_)) {
    (void)resume();  // by whoever holds it, when it has done
    return;
  }
  if (path == packets_) execute_packets();
  unlock_sends();
}

}  // namespace weir::rnic
