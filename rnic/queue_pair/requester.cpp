// The requester: executes a queue pair's send WQEs in order, in the thread that rang the doorbell.
//
// One WQE at a time: gather its local pieces (checking lkeys), let the responder's role act on the target,
// and turn the outcome into a completion; or park the queue, if the target cannot answer yet (parking.cpp).
#include <utility>

#include "rnic/adapter.hpp"
#include "rnic/between_hosts/packet_path.hpp"
#include "rnic/datagrams/datagram_packets.hpp"
#include "rnic/queue_pair/queue_pair.hpp"

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

// READ and the atomics.
bool brings_data_back(SendOpcode opcode) {
  return opcode >= SendOpcode::rdma_read && opcode <= SendOpcode::fetch_and_add;
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

void QueuePair::execute() {
  if (answers_by_packets()) return execute_packets();
  execute_here();
  if (datagram_packets_ != nullptr) datagram_packets_->send();
  if (packets_ != nullptr && packets_->unreliable_sends) packets_->unreliable_sends->send();
}

void QueuePair::execute_here() {
  for (std::uint32_t next = sq_.executed.load(std::memory_order_relaxed); next != sq_.doorbell;
       next = sq_.executed.load(std::memory_order_relaxed)) {
    const QpState now_in = state();
    SendWqe& wqe = sq_.at(next);
    if (now_in != QpState::rts) {
      if (now_in == QpState::sqe) return flush_sends();
      if (now_in == QpState::err) return fail_send(wqe, WcStatus::wr_flush_err);
      // What sqd finds under way goes on; what is behind it waits for rts.
      if (now_in != QpState::sqd || !under_way()) return;
    }
    if (pacer_.due_ns() != 0 && must_wait_its_turn()) return;
    const Outcome outcome = execute_one(wqe);
    switch (outcome) {
      case Outcome::done:
        parked_ = Park::none;
        charge(wqe);
        qp_.counters.count_done(remote_.counters(), wqe.opcode, wqe.byte_len);
        complete_send(wqe, WcStatus::success);
        note_likely_next();
        if (now_in == QpState::sqd) return drained();
        break;
      case Outcome::rnr:
        if (!receive_comes_soon() && !park(Park::rnr)) return;
        break;
      case Outcome::no_response:
        if (!reconnect_if_stale() && !park(Park::no_response)) return;
        break;
      case Outcome::late:
        if (!park(Park::late)) return;
        break;
      case Outcome::contended:
        if (!park(Park::contended)) return;
        break;
      case Outcome::local_fault:
        return fail_send(wqe, WcStatus::loc_prot_err);
      case Outcome::connecting:
        keep_addresses();
        if (!park_until_connected()) return;
        break;
      default:
        if (qp_.config.type == QpType::uc && wqe.status == WcStatus::success) {  // no acknowledgement says so
          charge(wqe);
          qp_.counters.count_done(nullptr, wqe.opcode, wqe.byte_len);
          complete_send(wqe, WcStatus::success);
          break;
        }
        fail_send(wqe, wqe.status != WcStatus::success ? wqe.status : requester_status(outcome));
        return;
    }
  }
}

Outcome QueuePair::execute_one(SendWqe& wqe) {
  if (wqe.opcode == SendOpcode::local_invalidate || wqe.opcode == SendOpcode::bind_window)
    return execute_local(wqe);
  Gather pieces;
  if (const auto error = prepare(wqe, pieces)) {
    wqe.status = *error;
    return Outcome::nak_operational;
  }
  wqe.byte_len = static_cast<std::uint32_t>(pieces.bytes);
  if (qp_.config.type == QpType::ud) return execute_datagram(wqe, pieces);
  if (qp_.config.type == QpType::raw_packet) return execute_frame(wqe, pieces);
  if (packets_ != nullptr) return send_unreliable(wqe, pieces);

  if (!remote_.connected()) connect_remote(HostPort::Wait::no);
  if (!remote_.connected()) return Outcome::no_response;
  if (remote_.gone()) {
    if (const Outcome kept = reach_keeper(); kept != Outcome::done) return kept;
  }
  if (qp_.config.type == QpType::xrc_send) {
    const Outcome selected = select_srq(Qpn(wqe.remote_srqn));
    if (selected != Outcome::done) return selected;
  }
  switch (wqe.opcode) {
    case SendOpcode::rdma_write:
      return remote_.rdma_write(pieces, wqe.remote_addr, wqe.rkey);
    case SendOpcode::rdma_write_with_imm:
      return remote_.rdma_write_with_imm(pieces, wqe.remote_addr, wqe.rkey, arrival_of(wqe, pieces.bytes));
    case SendOpcode::rdma_read:
      return remote_.rdma_read(pieces, wqe.remote_addr, wqe.rkey);
    case SendOpcode::compare_and_swap:
    case SendOpcode::fetch_and_add:
      return remote_.atomic(wqe.opcode, wqe.atomic, pieces, wqe.remote_addr, wqe.rkey);
    case SendOpcode::atomic_write:
      return remote_.atomic_write(pieces, wqe.remote_addr, wqe.rkey);
    default:
      return remote_.send(pieces, arrival_of(wqe, pieces.bytes));
  }
}

// Its pieces of our own memory, checked; or what is wrong with it before anybody else is asked.
std::optional<WcStatus> QueuePair::prepare(SendWqe& wqe, Gather& pieces) const {
  const bool reads = brings_data_back(wqe.opcode);
  const auto use = reads ? ProtectionTable::Use::write : ProtectionTable::Use::read;
  if (const auto error = gather(wqe, pieces, use)) return error;
  if (reads) {
    if (const auto error = check_reader(wqe, pieces)) return error;
  }
  if (wqe.opcode == SendOpcode::atomic_write && pieces.bytes != atomic_bytes)  // neither more nor less
    return WcStatus::loc_len_err;
  return std::nullopt;
}

// The target's process has ended; an XRC queue pair lives while another has it open (opened_queue_pair.cpp).
Outcome QueuePair::reach_keeper() {
  while (const auto opener = remote_.opener()) {
    HostPort::Reached reached = nic_.host().reach(*opener, dial_);
    if (reached.undecided) return Outcome::connecting;
    if (reached.silent) return Outcome::contended;
    if (reached.peer && remote_.keep_by(std::move(reached.peer))) return Outcome::done;
    remote_.forget_opener(*opener);
  }
  return Outcome::no_response;
}

// Its process need not be the queue pair's, and then it may be that no connection leads there yet.
Outcome QueuePair::select_srq(Qpn srqn) {
  if (remote_.srq_selected(srqn)) return Outcome::done;
  HostPort::Reached of{remote_.peer};
  if (srqn.slot() != remote_.peer->slot() || !remote_.peer->alive())
    of = nic_.host().reach(srqn.slot(), dial_);
  if (of.undecided) return Outcome::connecting;
  if (of.silent) return Outcome::contended;
  return remote_.select_srq(srqn, of.peer);
}

// Local protection check (IBA 10.2.3): an sge outside its region, or a READ into memory without LOCAL_WRITE.
std::optional<WcStatus> QueuePair::gather(SendWqe& wqe, Gather& out, ProtectionTable::Use use) const {
  if (wqe.inlined) {
    out.pieces[0] = {wqe.inline_data(), wqe.inline_bytes};
    out.count = wqe.inline_bytes != 0 ? 1 : 0;
    out.bytes = wqe.inline_bytes;
    out.is_ours = true;
    return std::nullopt;
  }
  const ProtectionTable& table = nic_.table();
  for (std::uint32_t i = 0; i < wqe.num_sge; ++i) {
    const Sge& sge = wqe.sges()[i];
    if (sge.length == 0) continue;
    if (!table.allows(sge, qp_.config.pd, use)) return WcStatus::loc_prot_err;
    const TptEntry& entry = table.entry(sge.lkey);
    void* const at = ProtectionTable::address(entry, sge.addr, use);
    if ((entry.access & access::on_demand) && !nic_.host().traps_copies() &&
        !nic_.host().fault_in(at, sge.length, use))
      return WcStatus::loc_prot_err;
    out.pieces[out.count++] = {at, sge.length};
    out.bytes += sge.length;
  }
  return out.bytes > max_message_bytes ? std::optional(WcStatus::loc_len_err) : std::nullopt;
}

// The memory management operations touch only our own table. What an initiator may still be doing under the
// old key is over when they complete (IBA 10.6.7.2).
Outcome QueuePair::execute_local(SendWqe& wqe) {
  const bool done = wqe.opcode == SendOpcode::bind_window
                        ? nic_.windows().bind({.key = wqe.rkey,
                                               .lkey = wqe.binding.lkey,
                                               .access = wqe.binding.access,
                                               .addr = wqe.remote_addr,
                                               .length = wqe.binding.length},
                                              qp_.qpn, qp_.config.pd)
                        : nic_.windows().invalidate(wqe.imm_be, qp_.qpn);
  if (!done) {
    wqe.status = WcStatus::mw_bind_err;
    return Outcome::nak_operational;
  }
  nic_.wait_for_initiators();
  return Outcome::done;
}

// What only requests have to whose answer carries data: an initiator depth (IBA 10.2.5: with none, it can
// have no READ or atomic outstanding), and for atomics room for the eight bytes that come back.
std::optional<WcStatus> QueuePair::check_reader(const SendWqe& wqe, Gather& into) const {
  if (attributes_.max_rd_atomic == 0) return WcStatus::loc_qp_op_err;
  if (wqe.opcode == SendOpcode::rdma_read) return std::nullopt;
  if (into.bytes < atomic_bytes) return WcStatus::loc_len_err;
  into.bytes = atomic_bytes;
  return std::nullopt;
}

// To the rate at which it may send; also what is lost, as the wire was used all the same.
void QueuePair::charge(const SendWqe& wqe) {
  if (pacer_.limits(wqe.path_kbps) && !brings_data_back(wqe.opcode))
    pacer_.sent(wqe.byte_len, nic_.host().now_ns(), wqe.path_kbps);
}

void QueuePair::complete_send(SendWqe& wqe, WcStatus status) {
  if (qp_.tracer != nullptr) qp_.tracer->finished(*this, wqe, status);
  wqe.status = status;
  const bool reported = wqe.signaled || status != WcStatus::success;
  if (status != WcStatus::success) qp_.counters.count_failed(status);
  // release, or more: the poller's acquire of `executed` must see status and byte_len. One writer, under the
  // send lock.
  const std::uint32_t executed = sq_.executed.load(std::memory_order_relaxed) + 1;
  if (!reported) return sq_.executed.store(executed, std::memory_order_release);
  publish_completion(sq_.executed, executed, qp_.config.send_cq->context());
  qp_.raise(qp_.sends, status == WcStatus::success ? Solicited::no : Solicited::yes);
}

// For the poller, which sees a request arrive before the application answers it.
void QueuePair::note_likely_next() {
  if (!remote_.connected()) return;
  receive_side_.expect(remote_.likely_cqe(), remote_.likely_write());
}

// Two programs on one CPU that answer each other's WRITEs and wait by watching their memory make no call by
// which either could give the CPU away, and each turn would cost the rest of a time slice. So it is given
// away behind the WRITE: if nothing else is outstanding, and once for each time that the peer did something
// itself.
bool QueuePair::peer_waits_for(Cpu cpu) {
  if (cpu == 0 || !initiator_on(cpu)) return false;
  if (sq_.doorbell - sq_.polled.load(std::memory_order_relaxed) != 1 || parked_ != Park::none) return false;
  if (sq_.at(sq_.doorbell - 1).opcode != SendOpcode::rdma_write) return false;
  const std::uint32_t operations = qp_.ctx->hazard.load(std::memory_order_relaxed);
  return operations != std::exchange(answered_, operations);
}

// A failed WQE stops the queue: it completes with its error, everything behind it is flushed. Of a connection
// that acknowledges nothing the receive queue goes on, and modify brings the send queue back (IBA 10.3.1.7).
void QueuePair::fail_send(SendWqe& wqe, WcStatus status) {
  complete_send(wqe, status);
  const bool unreliable = qp_.config.type == QpType::uc || is_datagram(qp_.config.type);
  const QpState in = state();
  if (!unreliable || (in != QpState::rts && in != QpState::sqd)) return enter_error();
  parked_ = Park::none;
  dial_ = 0;
  draining_.store(false, std::memory_order_release);
  auto expected = static_cast<std::uint32_t>(in);
  // An initiator may have moved us to err meanwhile; then that holds.
  qp_.ctx->state.compare_exchange_strong(expected, static_cast<std::uint32_t>(QpState::sqe));
  flush_sends();
}

void QueuePair::flush_sends() {
  while (sq_.executed.load(std::memory_order_relaxed) != sq_.doorbell)
    complete_send(sq_.at(sq_.executed.load(std::memory_order_relaxed)), WcStatus::wr_flush_err);
}

// IBA 10.3.1.5: affiliated event, if modify asked for it.
void QueuePair::drained() {
  if (!draining_.exchange(false, std::memory_order_acq_rel) || !attributes_.sqd_event) return;
  nic_.host().async_event(AsyncEvent::sq_drained, this, nullptr);
}

void QueuePair::connect_remote(HostPort::Wait wait) {
  if (attributes_.destination.value() == 0) return;
  remote_.connect(nic_.host().peer(attributes_.destination.slot(), wait), qp_.qpn, attributes_.destination);
}

// The destination was reset and brought up again after we had connected: on a wire its number alone would
// find it.
bool QueuePair::reconnect_if_stale() {
  if (!remote_.stale()) return false;
  connect_remote(HostPort::Wait::no);
  return remote_.connected();
}

}  // namespace weir::rnic
