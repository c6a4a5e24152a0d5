#include "rnic/queue_pair/requester.hpp"

#include <utility>

#include "rnic/between_hosts/unreliable_packets.hpp"
#include "rnic/ethernet/raw_packet.hpp"
#include "rnic/packet/psn.hpp"
#include "rnic/queue_pair/local_work.hpp"

namespace weir::rnic {
namespace {

WcStatus requester_status(Outcome nak) {
  switch (nak) {
    case Outcome::nak_access:
      return WcStatus::rem_access_err;
    case Outcome::nak_invalid:
      return WcStatus::rem_inv_req_err;
    default:
      return WcStatus::rem_op_err;
  }
}

Arrival arrival_of(const SendWqe& wqe, std::uint64_t bytes) {
  Arrival arrival;
  const bool write = wqe.opcode == SendOpcode::rdma_write_with_imm;
  arrival.opcode = write ? WcOpcode::recv_rdma_with_imm : WcOpcode::recv;
  arrival.byte_len = bytes;
  if (write || wqe.opcode == SendOpcode::send_with_imm)
    arrival.carries = Carries::immediate;
  else if (wqe.opcode == SendOpcode::send_with_invalidate)
    arrival.carries = Carries::invalidate;
  arrival.imm_be = wqe.imm_be;
  arrival.solicited = wqe.solicited;
  return arrival;
}

}  // namespace

Requester::Requester(const QpCommon& qp, SendSide& sends, ReceiveSide& receives, PacketPolling& polling)
    : qp_(qp), sends_(sends), receives_(receives), datagrams_(qp, polling) {
  if (qp.weak == nullptr) return;
  weak_ = std::make_unique<weak::Requests>(*qp.weak);
  pacer_.ask_always();  // then must_wait_its_turn() executes weakly, and normal execution tests nothing more
}

void Requester::execute() {
  execute_posted();
  datagrams_.send();
  if (unreliable_ != nullptr) unreliable_->send();
}

void Requester::execute_posted() {
  while (!sends_.all_executed()) {
    const QpState now_in = qp_.state();
    SendWqe& wqe = sends_.next();
    if (now_in != QpState::rts) {
      if (now_in == QpState::sqe) return sends_.flush();
      if (now_in == QpState::err) return fail(wqe, WcStatus::wr_flush_err);
      // A WQE under way at the move to SQD continues; the ones behind it wait for RTS.
      if (now_in != QpState::sqd || !under_way()) return;
    }
    if (pacer_.due_ns() != 0 && must_wait_its_turn()) return;
    if (act_on(execute_one(wqe), wqe, now_in) == Next::stop) return;
  }
}

Requester::Next Requester::act_on(Outcome outcome, SendWqe& wqe, QpState now_in) {
  const auto again_if = [](bool again) { return again ? Next::go_on : Next::stop; };
  switch (outcome) {
    case Outcome::done:
      return finish(wqe, now_in);
    case Outcome::rnr:
      return again_if(receive_comes_soon() || park(Park::rnr));
    case Outcome::no_response:
      return again_if(reconnect_if_stale() || agree() || park(Park::no_response));
    case Outcome::late:
      return again_if(park(Park::late));
    case Outcome::contended:
      return again_if(park(Park::contended));
    case Outcome::connecting:
      if (qp_.config.type == QpType::ud) addresses_.keep(sends_);
      return again_if(park_until_connected());
    case Outcome::local_fault:
      fail(wqe, WcStatus::loc_prot_err);
      return Next::stop;
    default:
      break;
  }
  if (qp_.config.type == QpType::uc && wqe.status == WcStatus::success) {  // no acknowledgement reports it
    lose(wqe);
    return Next::go_on;
  }
  fail(wqe, wqe.status != WcStatus::success ? wqe.status : requester_status(outcome));
  return Next::stop;
}

Requester::Next Requester::finish(SendWqe& wqe, QpState now_in) {
  parked_ = Park::none;
  charge(wqe);
  qp_.counters.count_done(target_.counters(), wqe.opcode, wqe.byte_len);
  sends_.complete(wqe, WcStatus::success);
  note_likely_next();
  if (now_in != QpState::sqd) return Next::go_on;
  sends_.drained();
  return Next::stop;
}

// Unreliable: a message that cannot be delivered is silently lost.
void Requester::lose(SendWqe& wqe) {
  charge(wqe);
  qp_.counters.count_done(nullptr, wqe.opcode, wqe.byte_len);
  sends_.complete(wqe, WcStatus::success);
}

// Inlined: each request goes through these, and they have one other caller, for weak execution.
[[gnu::always_inline]] inline Outcome Requester::reach_target(const SendWqe& wqe) {
  if (!target_.connected()) connect(HostPort::Wait::no);
  if (!target_.connected()) return Outcome::no_response;
  if (target_.gone()) {
    if (const Outcome kept = reach_keeper(); kept != Outcome::done) return kept;
  }
  return qp_.config.type == QpType::xrc_send ? select_srq(Qpn(wqe.remote_srqn)) : Outcome::done;
}

[[gnu::always_inline]] inline Outcome Requester::execute_at_target(SendWqe& wqe, const Gather& pieces) {
  if (const Outcome reached = reach_target(wqe); reached != Outcome::done) return reached;
  switch (wqe.opcode) {
    case SendOpcode::rdma_write:
      return target_.rdma_write(pieces, wqe.remote_addr, wqe.rkey);
    case SendOpcode::rdma_write_with_imm:
      return target_.rdma_write_with_imm(pieces, wqe.remote_addr, wqe.rkey, arrival_of(wqe, pieces.bytes));
    case SendOpcode::rdma_read:
      return target_.rdma_read(pieces, wqe.remote_addr, wqe.rkey);
    case SendOpcode::compare_and_swap:
    case SendOpcode::fetch_and_add:
      return target_.atomic(wqe.opcode, wqe.atomic, pieces, wqe.remote_addr, wqe.rkey);
    case SendOpcode::atomic_write:
      return target_.atomic_write(pieces, wqe.remote_addr, wqe.rkey);
    default:
      return target_.send(pieces, arrival_of(wqe, pieces.bytes));
  }
}

[[gnu::always_inline]] inline Outcome Requester::carry_out(SendWqe& wqe, const Gather& pieces) {
  wqe.byte_len = static_cast<std::uint32_t>(pieces.bytes);
  if (qp_.config.type == QpType::ud) return datagrams_.execute(wqe, pieces, dial_);
  if (qp_.config.type == QpType::raw_packet) return execute_frame(qp_, wqe, pieces, dial_);
  return over_packets_ ? send_unreliable(wqe, pieces) : execute_at_target(wqe, pieces);
}

Outcome Requester::execute_one(SendWqe& wqe) {
  if (is_local(wqe.opcode)) return execute_local(qp_, wqe) ? Outcome::done : Outcome::nak_operational;
  Gather pieces;
  if (const auto error = prepare(qp_, wqe, pieces)) {
    wqe.status = *error;
    return Outcome::nak_operational;
  }
  return carry_out(wqe, pieces);
}

Outcome Requester::carry_out_weakly(SendWqe& wqe, const Gather& pieces) { return carry_out(wqe, pieces); }
Outcome Requester::reach_target_weakly(const SendWqe& wqe) { return reach_target(wqe); }
Outcome Requester::write_with_imm_weakly(SendWqe& wqe, const Gather& part, std::uint64_t addr,
                                         std::uint64_t bytes) {
  return target_.rdma_write_with_imm(part, addr, wqe.rkey, arrival_of(wqe, bytes));
}

// Sends a UC message to another host.
Outcome Requester::send_unreliable(const SendWqe& wqe, const Gather& payload) {
  if (unreliable_ == nullptr) return Outcome::done;  // lost
  const auto packets = unreliable_->add(wqe, payload);
  if (!packets) return Outcome::local_fault;
  qp_.counters.requests_out.add(*packets);
  return Outcome::done;
}

// The target's process has ended; an XRC queue pair lives while another process has it open
// (opened_queue_pair.cpp).
Outcome Requester::reach_keeper() {
  while (const auto opener = target_.opener()) {
    HostPort::Reached reached = qp_.nic.host.reach(*opener, dial_);
    if (reached.undecided) return Outcome::connecting;
    if (reached.silent) return Outcome::contended;
    if (reached.peer && target_.keep_by(std::move(reached.peer))) return Outcome::done;
    target_.forget_opener(*opener);
  }
  return Outcome::no_response;
}

// The SRQ may belong to another process than the queue pair, so we may have no connection to it yet.
Outcome Requester::select_srq(Qpn srqn) {
  if (target_.srq_selected(srqn)) return Outcome::done;
  HostPort::Reached of{target_.peer};
  if (srqn.slot() != target_.peer->slot() || !target_.peer->alive())
    of = qp_.nic.host.reach(srqn.slot(), dial_);
  if (of.undecided) return Outcome::connecting;
  if (of.silent) return Outcome::contended;
  return target_.select_srq(srqn, of.peer);
}

// Charges the WQE to the rate limit; lost messages too, because the wire was used all the same.
void Requester::charge(const SendWqe& wqe) {
  if (pacer_.limits(wqe.path_kbps) && !brings_data_back(wqe.opcode))
    pacer_.sent(wqe.byte_len, qp_.nic.host.now_ns(), wqe.path_kbps);
}

// Shows the poller where the response will be written, since it sees the request first.
void Requester::note_likely_next() {
  if (target_.connected()) receives_.expect(target_.likely_cqe(), target_.likely_write());
}

bool Requester::gives_way() {
  if (!sends_.has_one_outstanding() || parked()) return false;
  if (sends_.at(sends_.doorbell() - 1).opcode != SendOpcode::rdma_write) return false;
  const std::uint32_t operations = qp_.ctx->hazard.load(std::memory_order_relaxed);
  return operations != std::exchange(answered_, operations);
}

// A failed WQE stops the queue: it completes with its error, and everything behind it is flushed. On a
// connection without acknowledgements the receive queue goes on, and modify brings the send queue back (IBA
// 10.3.1.7).
void Requester::fail(SendWqe& wqe, WcStatus status) {
  const bool unreliable = qp_.config.type == QpType::uc || is_datagram(qp_.config.type);
  const QpState in = qp_.state();
  if (!unreliable || (in != QpState::rts && in != QpState::sqd)) return sends_.fail(wqe, status);
  sends_.complete(wqe, status);
  give_up();
  sends_.set_draining(false);
  auto expected = static_cast<std::uint32_t>(in);
  // If an initiator has moved us to ERR meanwhile, ERR stays.
  qp_.ctx->state.compare_exchange_strong(expected, static_cast<std::uint32_t>(QpState::sqe));
  sends_.flush();
}

void Requester::connect(HostPort::Wait wait) {
  const Qpn destination = qp_.attributes.destination;
  if (destination.value() == 0) return;
  target_.connect(qp_.nic.host.peer(destination.slot(), wait), qp_.qpn, destination);
}

// The destination was reset and brought up again after we had connected. On a wire its number
// alone would still reach it.
bool Requester::reconnect_if_stale() {
  if (!target_.stale()) return false;
  connect(HostPort::Wait::no);
  return target_.connected();
}

bool Requester::agree() {
  const Path& path = qp_.attributes.path;
  std::optional<std::uint32_t> first_psn;
  if (sends_.executed() == 0) first_psn = packet::Psn(path.send_psn).value();
  if (!target_.connected() || !target_.agree(first_psn)) return false;
  const std::uint32_t theirs = target_.mtu_bytes();
  longest_alike_ = path.mtu_bytes == theirs ? any_length : std::min(path.mtu_bytes, theirs);
  if (longest_alike_ != any_length) pacer_.ask_always();  // then must_wait_its_turn() refuses what is longer
  return true;
}

// The ends have different path MTUs, and this message does not travel alike by both: the responder takes no
// first packet of another length than its own MTU (IBA 9.7.4.1.6).
bool Requester::refuses_length(const SendWqe& wqe) const {
  return longest_alike_ != any_length && !is_local(wqe.opcode) && !brings_data_back(wqe.opcode) &&
         wqe.posted_bytes() > longest_alike_;
}

void Requester::reset() {
  give_up();
  longest_alike_ = any_length;
  target_.disconnect();
  unreliable_ = nullptr;
  over_packets_ = false;
  addresses_.reset();
}

}  // namespace weir::rnic
