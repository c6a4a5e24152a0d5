#include "rnic/same_host/responder.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "rnic/memory/arrived.hpp"
#include "rnic/memory/copy.hpp"
#include "rnic/queue_pair/completion_signal.hpp"

namespace weir::rnic {

bool RemoteQueuePair::connect(PeerPtr target_peer, Qpn own, Qpn target) {
  disconnect();
  if (!target_peer) return false;
  SegmentHeader& segment = target_peer->segment();
  std::byte* base = target_peer->segment_base();
  const std::size_t bytes = target_peer->segment_size();
  QpContext& ctx = segment.qps[target.index()];
  own_ = own;
  connection_.answers_to = own.value();
  target_ = target;
  connection_.incarnation = ctx.incarnation;
  counters_ = &segment.qp_counters[target.index()];
  if (ctx.type == static_cast<std::uint16_t>(QpType::xrc_recv)) {
    if (ctx.xrcd == 0) return false;
    openers_ = openers_of(ctx, base, bytes);
    peer = std::move(target_peer);
    ctx_ = &ctx;
    return true;  // select_srq() finds the rest
  }
  const std::uint64_t cqe_offset = read_once(ctx.cqe_offset);
  const std::uint16_t type = read_once(ctx.type);
  cq_index_ = read_once(ctx.recv_cq);
  cq_line_ = read_once(ctx.cq_line);
  if (cqe_offset == 0 || cq_index_ >= max_cqs || cq_line_ >= max_qps) return false;
  if (type != static_cast<std::uint16_t>(QpType::rc) && type != static_cast<std::uint16_t>(QpType::uc))
    return false;
  pd_ = read_once(ctx.pd);
  cqe_mask_ = read_once(ctx.cqe_mask);
  cqes_ = at_offset<ReceiveCqe>(base, bytes, cqe_offset, std::uint64_t{cqe_mask_} + 1);
  if (const std::uint32_t srq = read_once(ctx.srq); srq != 0) {
    if (!srq_.connect(*target_peer, srq - 1)) return false;
    wqe_max_sge_ = srq_.max_sge();
  } else {
    wqe_stride_ = read_once(ctx.rq_stride);
    wqe_mask_ = read_once(ctx.rq_mask);
    wqes_ = at_offset<std::byte>(base, bytes, read_once(ctx.rq_offset),
                                 std::uint64_t{wqe_stride_} * (wqe_mask_ + 1ull));
    if (wqes_ == nullptr || wqe_stride_ < sizeof(ReceiveWqe)) return false;
    wqe_max_sge_ = 1 + (wqe_stride_ - static_cast<std::uint32_t>(sizeof(ReceiveWqe))) / sizeof(Sge);
  }
  if (cqes_ == nullptr) return false;
  const std::uint32_t landing_mask = read_once(ctx.landing_mask);
  landing_bytes_ = landing_mask == 0 ? 0 : landing_mask + 1;
  landing_ = at_offset<std::byte>(base, bytes, read_once(ctx.landing_offset), landing_bytes_);
  if (landing_ == nullptr || !std::has_single_bit(landing_bytes_)) landing_bytes_ = 0;
  cq_ = &segment.cqs[cq_index_];
  peer = memory_ = std::move(target_peer);
  ctx_ = &ctx;
  return true;
}

bool RemoteQueuePair::connect_to_ourselves(PeerPtr self, Qpn ours, Qpn sender) {
  if (!connect(std::move(self), ours, ours)) return false;
  // What arrives in packets was compared with what this end expects, packet by packet.
  connection_.answers_to = connection_.agreed_as = over_packets | sender.value();
  return true;
}

void RemoteQueuePair::disconnect() {
  give_up_send();
  *this = RemoteQueuePair();
}

// A receive of the target's own queue is flushed with the target; a receive of an SRQ would be lost to all
// others.
void RemoteQueuePair::give_up_send() {
  if (held_ && srq_.connected()) srq_.give_back(*held_);
  held_.reset();
  give_up_xrc_completion();
}

bool RemoteQueuePair::answers() const { return answers_as(connection_.agreed_as); }

bool RemoteQueuePair::expects_us() const { return answers_as(connection_.answers_to); }

inline bool RemoteQueuePair::answers_as(std::uint32_t initiator) const {
  const auto state = static_cast<QpState>(ctx_->state.load(std::memory_order_seq_cst));
  return state >= QpState::rtr && state <= QpState::sqe && is_connected_to(initiator);
}

bool RemoteQueuePair::agree(std::optional<std::uint32_t> first_psn) {
  if (connection_.agreed_as != not_agreed_yet || !expects_us()) return false;
  // A receiver of UC takes the PSN of any message's first packet (IBA 9.8.2.2.1).
  const bool compares = ctx_->type != static_cast<std::uint16_t>(QpType::uc);
  if (compares && first_psn && *first_psn != ctx_->terms.receive_psn.load(std::memory_order_relaxed))
    return false;
  connection_.agreed_as = connection_.answers_to;
  return true;
}

bool RemoteQueuePair::ended_by_refusal() const {
  const auto state = static_cast<QpState>(ctx_->state.load(std::memory_order_seq_cst));
  return state == QpState::err && is_connected_to(connection_.answers_to);
}

bool RemoteQueuePair::is_connected_to(std::uint32_t initiator) const {
  return ctx_->remote_qpn.load(std::memory_order_acquire) == initiator &&
         ctx_->incarnation == connection_.incarnation;
}

// The responder validates the operation before the key (IBA 9.7.4.1): a queue pair that was not given the
// right does not take such a request, whatever the key says.
bool RemoteQueuePair::permits(std::uint32_t need) const {
  return (ctx_->access.load(std::memory_order_relaxed) & need) != 0;
}

Outcome RemoteQueuePair::not_permitted() {
  return nak(Outcome::nak_invalid, WcStatus::loc_qp_op_err, nullptr, {});
}

// IBA 9.7.5.2.4 (R_Key validation): key, PD, access of the region, bounds.
const TptEntry* RemoteQueuePair::check_rkey(std::uint64_t addr, std::uint64_t length, std::uint32_t rkey,
                                            std::uint32_t need) const {
  const TptEntry& e = memory_->tpt_entry(rkey);
  if (rkey == 0 || e.key.load(std::memory_order_seq_cst) != rkey) return nullptr;
  if (e.pd != pd_ || !(e.access & need)) return nullptr;
  if (e.qpn != 0 && !window_answers(e, rkey)) return nullptr;
  return ProtectionTable::in_bounds(e, addr, length) ? &e : nullptr;
}

// A type 2 window: through its queue pair only, and not after a SEND of ours invalidated it.
bool RemoteQueuePair::window_answers(const TptEntry& e, std::uint32_t key) const {
  const auto& invalidated = memory_->segment().invalidated[(key >> 8) & (max_keys - 1)];
  return e.qpn == target_.value() && invalidated.load(std::memory_order_acquire) != key;
}

// IBA 9.4.1.1.1: the key must be a type 2 window's, of this queue pair and its domain.
bool RemoteQueuePair::invalidate_remotely(std::uint32_t key) const {
  const TptEntry& e = memory_->tpt_entry(key);
  if (key == 0 || e.key.load(std::memory_order_seq_cst) != key) return false;
  if (e.qpn == 0 || e.pd != pd_ || !window_answers(e, key)) return false;
  memory_->segment().invalidated[(key >> 8) & (max_keys - 1)].store(key, std::memory_order_seq_cst);
  return true;
}

Outcome RemoteQueuePair::move_in(const Gather& from, const TptEntry& entry, std::uint64_t addr) {
  if (std::byte* to = behind_unfinished_ ? nullptr : memory_->window(entry, addr, from.bytes)) {
    const auto own = memory_->own_memory(to, from.bytes);
    const Outcome moved = copied(from, own, [&] { copy_in_order(to, from.span()); });
    if (moved != Outcome::done) return moved;
    behind_last_write_ = to + from.bytes;
    if (memory_->still_there(entry, addr, from.bytes)) return Outcome::done;
  }
  const iovec remote{ProtectionTable::address(entry, addr), from.bytes};
  const std::uint32_t key = entry.key.load(std::memory_order_relaxed);
  return outcome_of_write(memory_->write(from.span(), {{&remote, 1}, {&key, 1}}));
}

Outcome RemoteQueuePair::outcome_of_write(Peer::Transfer transfer) {
  behind_unfinished_ =
      transfer == Peer::Transfer::unfinished || (behind_unfinished_ && transfer != Peer::Transfer::done);
  return outcome_of(transfer);
}

Outcome RemoteQueuePair::rdma_write(const Gather& from, std::uint64_t addr, std::uint32_t rkey) {
  const Operation operation(*this, rkey);
  if (const Outcome begun = operation.admitted(); begun != Outcome::done) return begun;
  if (!permits(access::remote_write)) return not_permitted();
  if (from.bytes == 0) return Outcome::done;
  const TptEntry* entry = check_rkey(addr, from.bytes, rkey, access::remote_write);
  if (entry == nullptr) return nak(Outcome::nak_access, WcStatus::loc_qp_op_err, nullptr, {});
  return move_in(from, *entry, addr);
}

Outcome RemoteQueuePair::rdma_write_with_imm(const Gather& from, std::uint64_t addr, std::uint32_t rkey,
                                             const Arrival& arrival) {
  const Operation operation(*this, rkey);
  if (const Outcome begun = operation.admitted(); begun != Outcome::done) return begun;
  if (!permits(access::remote_write)) return not_permitted();
  if (!can_receive()) return Outcome::rnr;
  if (from.bytes != 0) {
    const TptEntry* entry = check_rkey(addr, from.bytes, rkey, access::remote_write);
    if (entry == nullptr) return nak(Outcome::nak_access, WcStatus::loc_qp_op_err, nullptr, {});
    if (const Outcome moved = move_in(from, *entry, addr); moved != Outcome::done) return moved;
  }
  TakenReceive taken;
  if (!take_receive(taken)) return Outcome::rnr;
  ReceiveCqe& cqe = next_cqe();
  cqe.payload_at = PayloadAt::buffer;
  publish(cqe, taken, arrival, WcStatus::success);
  return Outcome::done;
}

Outcome RemoteQueuePair::rdma_read(const Gather& into, std::uint64_t addr, std::uint32_t rkey) {
  const Operation operation(*this, rkey);
  if (const Outcome begun = operation.admitted(); begun != Outcome::done) return begun;
  if (!permits(access::remote_read) || !permits(access::responder_depth)) return not_permitted();
  if (into.bytes == 0) return Outcome::done;
  const TptEntry* entry = check_rkey(addr, into.bytes, rkey, access::remote_read);
  if (entry == nullptr) return nak(Outcome::nak_access, WcStatus::loc_qp_op_err, nullptr, {});
  if (const std::byte* from = memory_->window(*entry, addr, into.bytes)) {
    const Outcome moved =
        copied(into, memory_->own_memory(from, into.bytes), [&] { copy_scatter(from, into.span()); });
    if (moved != Outcome::done) return moved;
    if (memory_->still_there(*entry, addr, into.bytes)) return Outcome::done;
  }
  const iovec remote{ProtectionTable::address(*entry, addr), into.bytes};
  return outcome_of(memory_->read(into.span(), {{&remote, 1}, {&rkey, 1}}));
}

Outcome RemoteQueuePair::send(const Gather& from, const Arrival& arrival) {
  const Operation operation(*this, any_receive);
  if (const Outcome begun = operation.admitted(); begun != Outcome::done) return begun;
  if (!can_receive()) return Outcome::rnr;
  TakenReceive taken;
  if (!take_receive(taken)) return Outcome::rnr;
  if (from.bytes > taken.wqe->length)
    return nak(Outcome::nak_invalid, WcStatus::loc_len_err, &taken, arrival);
  if (!receive_buffers_valid(*taken.wqe, from.bytes))
    return nak(Outcome::nak_operational, WcStatus::loc_prot_err, &taken, arrival);
  if (arrival.carries == Carries::invalidate && !invalidate_remotely(arrival.imm_be))
    return nak(Outcome::nak_access, WcStatus::mw_bind_err, &taken, arrival);
  ReceiveCqe& cqe = next_cqe();
  const Outcome outcome = deliver(from, *taken.wqe, cqe);
  if (outcome == Outcome::no_response || outcome == Outcome::late) {
    held_ = taken;
    return outcome;
  }
  if (outcome == Outcome::local_fault) {  // nothing would have been sent
    put_back(taken);
    return outcome;
  }
  if (outcome != Outcome::done) return nak(outcome, WcStatus::loc_prot_err, &taken, arrival);
  publish(cqe, taken, arrival, WcStatus::success);
  return Outcome::done;
}

void RemoteQueuePair::announce_parked() const {
  // seq_cst, here and in post_recv: we set the flag, then read the queue; the owner posts, then reads the
  // flag.
  ctx_->initiator_parked.store(1, std::memory_order_seq_cst);
  if (!srq_.connected()) return;
  SrqContext& srq = srq_.context();
  if (memory_ != peer)  // its owner knows neither us nor our queue pair
    srq.parked_slots[own_.slot() / 64].fetch_or(1ull << own_.slot() % 64, std::memory_order_seq_cst);
  srq.parked.store(1, std::memory_order_seq_cst);
}

// ---- receive WQEs

bool RemoteQueuePair::receive_available() {
  if (held_) return true;
  const std::uint32_t withheld_from = ctx_->withheld_from.load(std::memory_order_acquire);
  if (withheld_from != 0 && is_withheld(withheld_from)) [[unlikely]]
    return false;
  if (srq_.connected()) return srq_.available();
  if (ctx_->rq_next != ctx_->seen.rq_posted) return true;
  ctx_->seen.rq_posted = ctx_->rq_posted.load(std::memory_order_seq_cst);
  return ctx_->rq_next != ctx_->seen.rq_posted;
}

// The owner counts the messages that it makes wait, and says when they may go on.
bool RemoteQueuePair::is_withheld(std::uint32_t from) {
  const std::uint32_t message = ctx_->cqe_next + 1;
  if (static_cast<std::int32_t>(message - from) < 0) return false;
  if (std::exchange(ctx_->withheld_reported, message) != message) peer->report_withheld(target_, message);
  return true;
}

// With an SRQ the completion ring may be shorter than the SRQ; without one it is as long as the receive ring.
bool RemoteQueuePair::completion_room() {
  if (xrc_completions_ != nullptr) return true;  // the ring is longer than the SRQ
  if (ctx_->cqe_next - ctx_->seen.cqe_polled <= cqe_mask_) return true;
  ctx_->seen.cqe_polled = ctx_->cqe_polled.load(std::memory_order_seq_cst);
  return ctx_->cqe_next - ctx_->seen.cqe_polled <= cqe_mask_;
}

bool RemoteQueuePair::take_receive(TakenReceive& taken) {
  if (held_) {
    taken = *std::exchange(held_, std::nullopt);
    return true;
  }
  if (srq_.connected()) return srq_.claim(own_, taken);
  taken.number = ctx_->rq_next & wqe_mask_;
  taken.wqe = reinterpret_cast<const ReceiveWqe*>(wqes_ + std::size_t{wqe_stride_} * taken.number);
  ++ctx_->rq_next;
  // The next SEND reads the next WQE, which is in the owner's cache: start fetching it.
  __builtin_prefetch(wqes_ + std::size_t{wqe_stride_} * (ctx_->rq_next & wqe_mask_));
  return true;
}

// The receive is for our next message or, with an SRQ, for any initiator's.
void RemoteQueuePair::put_back(const TakenReceive& taken) {
  if (!srq_.connected()) {
    --ctx_->rq_next;
    return;
  }
  held_ = taken;
  give_up_send();
}

// As far as the message reaches: what it does not touch is not looked at.
bool RemoteQueuePair::receive_buffers_valid(const ReceiveWqe& wqe, std::uint64_t bytes) const {
  const std::uint32_t pieces = read_once(wqe.num_sge);
  if (pieces > wqe_max_sge_) return false;
  for (std::uint32_t i = 0; i < pieces && bytes != 0; ++i) {
    const Sge sge = read_once(wqe.sge[i]);
    const std::uint64_t reached = std::min<std::uint64_t>(sge.length, bytes);
    bytes -= reached;
    if (reached == 0) continue;
    const TptEntry& e = memory_->tpt_entry(sge.lkey);
    const std::uint32_t pd = srq_.connected() ? srq_.pd() : pd_;
    if (sge.lkey == 0 || e.key.load(std::memory_order_seq_cst) != sge.lkey || e.pd != pd) return false;
    if (!(e.access & access::local_write) || !ProtectionTable::in_bounds(e, sge.addr, reached)) return false;
  }
  return true;
}

// ---- completion

void RemoteQueuePair::publish(ReceiveCqe& cqe, const TakenReceive& taken, const Arrival& arrival,
                              WcStatus status) {
  cqe.wqe = taken.number;
  cqe.byte_len = static_cast<std::uint32_t>(arrival.byte_len);
  cqe.imm_be = arrival.imm_be;
  cqe.carries = arrival.carries;
  cqe.opcode = arrival.opcode;
  cqe.status = status;
  if (xrc_completions_ == nullptr) {
    publish_completion(cqe.sequence, ++ctx_->cqe_next, *cq_);
    // A CQE that its poller watches stays in the poller's cache until it is written.
    behind_last_cqe_ = cq_line_ < watched_lines ? nullptr : &cqes_[ctx_->cqe_next & cqe_mask_];
  } else {
    complete_xrc();
  }
  mark_ready(*cq_, cq_line_);
  const bool solicited = arrival.solicited || status != WcStatus::success;
  if (!take_armed(*cq_, solicited ? Solicited::yes : Solicited::no)) return;
  counters_->receive_wakeups.shared_add(1);
  memory_->raise_cq_event(cq_index_);
}

namespace {

Fault fault_of(Outcome nak) {
  if (nak == Outcome::nak_access) return Fault::access;
  return nak == Outcome::nak_invalid ? Fault::invalid_request : Fault::operational;
}

}  // namespace

// A responder class C error (IBA 9.9.3.1): the message is refused and the target queue pair goes to the error
// state; if the message had taken a receive WQE, that completes with the responder's own view of the error.
// On UC the error is not reported (class D): the message is dropped and its receive waits for the next one.
// Bad receive buffers are the target's own fault on both (class A), and so is an SRQ's receive that cannot be
// put back (class E).
Outcome RemoteQueuePair::nak(Outcome with, WcStatus receive_status, const TakenReceive* taken,
                             const Arrival& arrival) {
  const bool uc = ctx_->type == static_cast<std::uint16_t>(QpType::uc);
  if (uc && receive_status != WcStatus::loc_prot_err && (taken == nullptr || !srq_.connected())) {
    if (taken != nullptr) --ctx_->rq_next;
    return with;
  }
  if (taken != nullptr) {
    ReceiveCqe& cqe = next_cqe();
    cqe.payload_at = PayloadAt::buffer;
    publish(cqe, *taken, arrival, receive_status);
  }
  to_error_state(*ctx_);
  connection_.refused = true;
  (peer->alive() || !keeper_ ? peer : keeper_)->report_fault(target_, fault_of(with));
  return with;
}

}  // namespace weir::rnic
