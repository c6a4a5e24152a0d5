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
#include "rnic/copy.hpp"
#include "rnic/packet_batch.hpp"
#include "rnic/packet_path.hpp"

namespace weir::rnic {
namespace {

using packet::Verdict;

constexpr std::uint16_t full_pkey = 0xffff;

Verdict verdict_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::done:
      return Verdict::done;
    case Outcome::rnr:
      return Verdict::rnr;
    case Outcome::nak_access:
      return Verdict::nak_access;
    case Outcome::nak_invalid:
      return Verdict::nak_invalid;
    case Outcome::nak_operational:
      return Verdict::nak_operational;
    default:
      return Verdict::lost;
  }
}

Outcome outcome_of(Verdict verdict) {
  if (verdict == Verdict::nak_invalid) return Outcome::nak_invalid;
  return verdict == Verdict::nak_access ? Outcome::nak_access : Outcome::nak_operational;
}

Gather one_piece(const void* at, std::size_t bytes) {
  Gather one;
  one.pieces[0] = {const_cast<void*>(at), bytes};
  one.count = bytes != 0 ? 1 : 0;
  one.bytes = bytes;
  one.is_ours = true;
  return one;
}

bool addressed(const PacketRoute& out, const ArrivedPacket& arrived) {
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

// ---- the requester's view of the send queue

std::uint32_t PacketSends::posted() const { return qp_.may_send_up_to(); }

WcStatus PacketSends::look_up(std::uint32_t number, packet::WorkRequest& request, Gather& pieces) {
  SendWqe& wqe = qp_.sq_.at(number);
  request.opcode = wqe.opcode;
  request.solicited = wqe.solicited;
  request.fence = wqe.fenced;
  request.imm_be = wqe.imm_be;
  request.remote_addr = wqe.remote_addr;
  request.rkey = wqe.rkey;
  request.compare_add = wqe.atomic.compare_add;
  request.swap = wqe.atomic.swap;
  pieces.count = 0;
  pieces.bytes = 0;
  pieces.is_ours = false;
  return qp_.prepare(wqe, pieces).value_or(WcStatus::success);
}

WcStatus PacketSends::execute_local(std::uint32_t number) {
  SendWqe& wqe = qp_.sq_.at(number);
  return qp_.execute_local(wqe) == Outcome::done ? WcStatus::success : wqe.status;
}

bool PacketSends::scatter(std::uint32_t, const Gather& pieces, std::uint64_t offset,
                          std::span<const std::byte> bytes) {
  for (const iovec& piece : pieces.span()) {
    if (bytes.empty()) return true;
    if (offset >= piece.iov_len) {
      offset -= piece.iov_len;
      continue;
    }
    const iovec into{static_cast<std::byte*>(piece.iov_base) + offset,
                     std::min(piece.iov_len - offset, bytes.size())};
    offset = 0;
    if (try_copy({&into, 1}, {}, [&] { std::memcpy(into.iov_base, bytes.data(), into.iov_len); }) !=
        Trapped::no)
      return false;
    bytes = bytes.subspan(into.iov_len);
  }
  return bytes.empty();
}

void PacketSends::complete(std::uint32_t number, WcStatus status, std::uint64_t bytes) {
  SendWqe& wqe = qp_.sq_.at(number);
  if (status != WcStatus::success) return qp_.fail_send(wqe, status);
  wqe.byte_len = static_cast<std::uint32_t>(bytes);
  qp_.counters_.count_done(nullptr, wqe.opcode, wqe.byte_len);
  qp_.complete_send(wqe, WcStatus::success);
}

// ---- the responder's view of our own memory and receives

Verdict PacketTarget::begin_send() {
  is_write_ = false;
  return verdict_of(own_.begin_send());
}

Verdict PacketTarget::begin_write(std::uint64_t addr, std::uint32_t rkey, std::uint64_t length) {
  is_write_ = true;
  write_addr_ = addr;
  write_rkey_ = rkey;
  return verdict_of(own_.check_write(addr, length, rkey));
}

Verdict PacketTarget::append(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (!is_write_) return verdict_of(own_.append_to_send(offset, bytes));
  return verdict_of(
      own_.rdma_write(one_piece(bytes.data(), bytes.size()), write_addr_ + offset, write_rkey_));
}

Verdict PacketTarget::finish(const packet::Ending& ending) {
  const Verdict verdict = tell_of(ending);
  if (verdict == Verdict::done)
    counters().count_served(is_write_ ? SendOpcode::rdma_write : SendOpcode::send, ending.byte_len);
  return verdict;
}

Verdict PacketTarget::tell_of(const packet::Ending& ending) {
  if (is_write_ && !ending.imm_be) return Verdict::done;
  Arrival arrival;
  arrival.opcode = is_write_ ? WcOpcode::recv_rdma_with_imm : WcOpcode::recv;
  arrival.byte_len = ending.byte_len;
  if (ending.imm_be) {
    arrival.carries = Carries::immediate;
    arrival.imm_be = *ending.imm_be;
  } else if (ending.invalidate) {
    arrival.carries = Carries::invalidate;
    arrival.imm_be = *ending.invalidate;
  }
  arrival.solicited = ending.solicited;
  // The bytes of a WRITE are there; what is left of it is to be told.
  return verdict_of(is_write_ ? own_.rdma_write_with_imm({}, 0, 0, arrival) : own_.finish_send(arrival));
}

Verdict PacketTarget::check_read(std::uint64_t addr, std::uint32_t rkey, std::uint64_t length) {
  const Verdict verdict = verdict_of(own_.check_read(addr, length, rkey));
  if (verdict == Verdict::done) counters().count_served(SendOpcode::rdma_read, length);
  return verdict;
}

Verdict PacketTarget::read(std::uint64_t addr, std::uint32_t rkey, std::uint32_t length,
                           std::span<iovec> room, std::uint32_t& used) {
  if (length == 0) return Verdict::done;
  const Outcome begun = own_.begin_read(addr, length, rkey, room[used]);
  if (begun == Outcome::done) ++used;
  return verdict_of(begun);
}

Verdict PacketTarget::atomic(SendOpcode opcode, std::uint64_t addr, std::uint32_t rkey,
                             std::uint64_t compare_add, std::uint64_t swap, std::uint64_t& before) {
  const AtomicOperands operands{.compare_add = compare_add, .swap = swap};
  const Verdict verdict =
      verdict_of(own_.atomic(opcode, operands, one_piece(&before, sizeof before), addr, rkey));
  if (verdict == Verdict::done) counters().count_served(opcode, sizeof before);
  return verdict;
}

Verdict PacketTarget::atomic_write(std::uint64_t addr, std::uint32_t rkey,
                                   std::span<const std::byte, atomic_bytes> value) {
  const Verdict verdict = verdict_of(own_.atomic_write(one_piece(value.data(), value.size()), addr, rkey));
  if (verdict == Verdict::done) counters().count_served(SendOpcode::atomic_write, value.size());
  return verdict;
}

void PacketTarget::refuse(Verdict why) { (void)own_.refuse(outcome_of(why)); }

// ---- the queue pair

PacketPath::PacketPath(QueuePair& qp, const Path& path, Qpn remote_number)
    : route{.source = path.source,
            .destination = path.destination,
            .traffic_class = path.traffic_class,
            .hop_limit = path.hop_limit,
            .interface = path.interface,
            .from = qp.qpn()},
      icrc_out({.source = path.source,
                .destination = path.destination,
                .source_port = wire::roce_port,
                .destination_port = wire::roce_port}),
      remote(remote_number),
      mtu(path.mtu_bytes),
      sends(qp) {}

// To rtr. Under the send lock.
void QueuePair::open_packets() {
  const Path& path = attributes_.path;
  auto made = std::make_unique<PacketPath>(*this, path, attributes_.destination);
  made->window = nic_.packet_window(path.destination);
  if (made->target.connect(nic_.host().peer(nic_.slot(), HostPort::Wait::no), qpn_, made->remote))
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
    ctx_->remote_gid[i].store(gid_words[i], std::memory_order_relaxed);
  ctx_->remote_qpn.store(over_packets | made->remote.value(), std::memory_order_seq_cst);
  poll_packets();
  const std::lock_guard lock(packets_lock_);
  packets_ = std::move(made);
}

void QueuePair::poll_packets() {
  if (on_packets_.load(std::memory_order_relaxed) || on_packets_.exchange(true)) return;
  config_.send_cq->on_packets.fetch_add(1, std::memory_order_relaxed);
  config_.recv_cq->on_packets.fetch_add(1, std::memory_order_relaxed);
}

// What modify changed, as far as both halves go by it.
void QueuePair::set_packets(QpState to) {
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
    config_.send_cq->on_packets.fetch_sub(1, std::memory_order_relaxed);
    config_.recv_cq->on_packets.fetch_sub(1, std::memory_order_relaxed);
  }
  std::shared_ptr<PacketPath> closed;
  {
    const std::lock_guard lock(packets_lock_);
    closed = std::move(packets_);
  }
  if (closed == nullptr) return;
  const std::lock_guard lock(closed->arriving);
  closed->responder.reset();
  closed->target.disconnect();
  closed->requester.reset();
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
  const auto deadline_ns = requester.deadline_ns();
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
  counters_.requests_out.add(grown(now.packets, was.packets));
  const std::uint64_t again = grown(now.retransmitted, was.retransmitted);
  counters_.requests_again.add(again);
  counters_.retries.add(again);
  counters_.naks_in.add(grown(now.sequence_naks, was.sequence_naks) + grown(now.fatal_naks, was.fatal_naks) +
                        grown(now.implied_naks, was.implied_naks));
  const std::uint64_t rnrs = grown(now.rnr_naks, was.rnr_naks);
  counters_.rnr_naks_in.add(rnrs);
  counters_.rnrs.add(rnrs);
  counters_.no_responses.add(grown(now.timeouts, was.timeouts));
  counters_.answers_unwanted.add(grown(now.stray, was.stray));
}

// By whoever receives packets. `sent`, `again`: answers, and of these replays.
void QueuePair::count_answers(PacketPath& path, std::uint64_t sent, std::uint64_t again) {
  const packet::ResponderCounts& now = path.responder->counts();
  packet::ResponderCounts& was = path.counted_answers;
  counters_.answers_out.add(sent);
  counters_.answers_again.add(again);
  counters_.naks_out.add(grown(now.sequence_naks, was.sequence_naks) + grown(now.fatal_naks, was.fatal_naks));
  counters_.rnr_naks_out.add(grown(now.rnr_naks, was.rnr_naks));
  counters_.requests_repeated.add(grown(now.duplicates, was.duplicates));
  counters_.requests_dropped.add(grown(now.early, was.early) + grown(now.dropped, was.dropped));
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
  if (due || requester.waits_for_window()) execute_packets();
  if (!sends_packets()) return packets_->noted = false;
  return packets_->noted = !requester.idle() || requester.waits_for_window();
}

// Not under the send lock. The caller has found the packet whole, and it names us.
void QueuePair::receive_packet(const ArrivedPacket& arrived) {
  counters_.packets_in.add(1);
  if (config_.type == QpType::ud) return receive_datagram(arrived);
  const std::shared_ptr<PacketPath> path = packets();
  if (path == nullptr || !addressed(path->route, arrived)) return counters_.requests_dropped.add(1);
  if (packet::Responder::is_answer(arrived.packet)) {
    if (!lock_soon(send_lock_)) return counters_.requests_dropped.add(1);
    if (path == packets_ && sends_packets()) {
      packets_->requester->receive(nic_.host().now_ns(), arrived.packet);
      count_sends();
    }
    return unlock_sends();
  }
  const std::lock_guard lock(path->arriving);
  if (path->responder) path->responder->receive(arrived.packet);
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
  if (!lock_soon(send_lock_)) return;
  if (path == packets_) execute_packets();
  unlock_sends();
}

}  // namespace weir::rnic
