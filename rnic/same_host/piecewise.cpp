// A message that arrives in packets, executed on our own queue pair part by part: the responder's role when
// the initiator is on another host.
//
// Every part is an operation of its own: it holds the hazard, checks that the queue pair still answers, and
// checks the keys again, because the program may have taken memory back since the previous part.
#include <algorithm>
#include <utility>

#include "rnic/memory/arrived.hpp"
#include "rnic/memory/copy.hpp"
#include "rnic/same_host/responder.hpp"

namespace weir::rnic {
namespace {

// The part [offset, offset + bytes) of a receive's buffers, piece by piece; false: `each` refused one.
template <class Each>
bool for_each_piece(const ReceiveWqe& wqe, std::uint32_t max_pieces, std::uint64_t offset,
                    std::span<const std::byte> bytes, const Each& each) {
  const std::uint32_t pieces = read_once(wqe.num_sge);
  if (pieces > max_pieces) return false;
  for (std::uint32_t i = 0; i < pieces && !bytes.empty(); ++i) {
    Sge sge = read_once(wqe.sge[i]);
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    sge.addr += offset;
    sge.length -= static_cast<std::uint32_t>(offset);
    offset = 0;
    sge.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(sge.length, bytes.size()));
    if (!each(sge, bytes.first(sge.length))) return false;
    bytes = bytes.subspan(sge.length);
  }
  return bytes.empty();
}

Gather gather_of(std::span<const std::byte> bytes) {
  Gather one;
  one.pieces[0] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
  one.count = bytes.empty() ? 0 : 1;
  one.bytes = bytes.size();
  one.is_ours = true;
  return one;
}

}  // namespace

Outcome RemoteQueuePair::begin_send() {
  const Operation operation(*this, any_receive);
  if (const Outcome begun = operation.admitted(); begun != Outcome::done) return begun;
  if (held_) return Outcome::done;
  if (!can_receive()) return Outcome::rnr;
  TakenReceive taken;
  if (!take_receive(taken)) return Outcome::rnr;
  held_ = taken;
  return Outcome::done;
}

// The region of a piece of a posted receive; nullptr: the receive has changed.
const TptEntry* RemoteQueuePair::receive_region(const Sge& sge) const {
  const TptEntry& entry = memory_->tpt_entry(sge.lkey);
  const std::uint32_t pd = srq_.connected() ? srq_.pd() : pd_;
  if (sge.lkey == 0 || entry.key.load(std::memory_order_seq_cst) != sge.lkey || entry.pd != pd)
    return nullptr;
  const bool covered =
      (entry.access & access::local_write) && ProtectionTable::in_bounds(entry, sge.addr, sge.length);
  return covered ? &entry : nullptr;
}

Outcome RemoteQueuePair::append_to_send(std::uint64_t offset, std::span<const std::byte> bytes) {
  const Operation operation(*this, any_receive);
  if (const Outcome begun = operation.admitted(); begun != Outcome::done) return begun;
  if (!held_) return Outcome::no_response;  // it was flushed
  const TakenReceive taken = *held_;
  Arrival arrival;
  arrival.byte_len = offset + bytes.size();
  const auto fail = [&](Outcome with, WcStatus status) {
    held_.reset();
    return nak(with, status, &taken, arrival);
  };
  if (offset + bytes.size() > read_once(taken.wqe->length))
    return fail(Outcome::nak_invalid, WcStatus::loc_len_err);
  Outcome moved = Outcome::nak_operational;
  const bool placed =
      for_each_piece(*taken.wqe, wqe_max_sge_, offset, bytes, [&](const Sge& sge, auto piece) {
        const TptEntry* const region = receive_region(sge);
        moved = region != nullptr ? move_in(gather_of(piece), *region, sge.addr) : Outcome::nak_operational;
        return moved == Outcome::done;
      });
  if (placed) return Outcome::done;
  if (moved == Outcome::late || moved == Outcome::no_response) return moved;  // to be tried again
  return fail(Outcome::nak_operational, WcStatus::loc_prot_err);
}

Outcome RemoteQueuePair::finish_send(const Arrival& arrival) {
  const Operation operation(*this, any_receive);
  if (const Outcome begun = operation.admitted(); begun != Outcome::done) return begun;
  if (!held_) return Outcome::no_response;
  const TakenReceive taken = *std::exchange(held_, std::nullopt);
  if (arrival.carries == Carries::invalidate && !invalidate_remotely(arrival.imm_be))
    return nak(Outcome::nak_access, WcStatus::mw_bind_err, &taken, arrival);
  ReceiveCqe& cqe = next_cqe();
  cqe.payload_at = PayloadAt::buffer;
  publish(cqe, taken, arrival, WcStatus::success);
  return Outcome::done;
}

Outcome RemoteQueuePair::check_range(std::uint64_t addr, std::uint64_t length, std::uint32_t rkey,
                                     std::uint32_t need) {
  const Operation operation(*this, rkey);
  if (const Outcome begun = operation.admitted(); begun != Outcome::done) return begun;
  const bool takes_it = permits(need) && (need != access::remote_read || permits(access::responder_depth));
  if (!takes_it) return not_permitted();
  if (length == 0 || check_rkey(addr, length, rkey, need) != nullptr) return Outcome::done;
  return nak(Outcome::nak_access, WcStatus::loc_qp_op_err, nullptr, {});
}

Outcome RemoteQueuePair::check_write(std::uint64_t addr, std::uint64_t length, std::uint32_t rkey) {
  return check_range(addr, length, rkey, access::remote_write);
}

Outcome RemoteQueuePair::check_read(std::uint64_t addr, std::uint64_t length, std::uint32_t rkey) {
  return check_range(addr, length, rkey, access::remote_read);
}

// Like an Operation, but ended by another call. A request that was refused moved the queue pair to the error
// state; READs that it had accepted before are answered all the same.
Outcome RemoteQueuePair::begin_read(std::uint64_t addr, std::uint64_t length, std::uint32_t rkey, iovec& at,
                                    bool after_refusal) {
  const auto may_answer = [&] { return answers() || (after_refusal && ended_by_refusal()); };
  if (!may_answer()) return Outcome::no_response;
  reading_ = ctx_->hazard.load(std::memory_order_relaxed) | 1;
  ctx_->reaches.store(rkey, std::memory_order_release);
  ctx_->hazard.store(reading_, std::memory_order_seq_cst);
  Outcome outcome = may_answer() ? Outcome::done : Outcome::no_response;
  if (outcome == Outcome::done) {
    const TptEntry* const entry = check_rkey(addr, length, rkey, access::remote_read);
    std::byte* const from = entry != nullptr ? memory_->window(*entry, addr, length) : nullptr;
    if (from == nullptr) {
      outcome = entry == nullptr ? Outcome::nak_access : Outcome::nak_operational;
      if (!after_refusal) outcome = nak(outcome, WcStatus::loc_qp_op_err, nullptr, {});
    }
    at = {from, length};
  }
  if (outcome != Outcome::done) end_read();
  return outcome;
}

void RemoteQueuePair::end_read() {
  if (const std::uint32_t begun_as = std::exchange(reading_, 0); begun_as != 0)
    ctx_->hazard.store(begun_as + 1, std::memory_order_release);
}

Outcome RemoteQueuePair::refuse(Outcome with) {
  const Operation operation(*this, any_receive);
  if (const Outcome begun = operation.admitted(); begun != Outcome::done) return begun;
  const auto taken = std::exchange(held_, std::nullopt);
  const WcStatus status = with == Outcome::nak_invalid ? WcStatus::rem_inv_req_err : WcStatus::loc_qp_op_err;
  return nak(with, status, taken ? &*taken : nullptr, {});
}

}  // namespace weir::rnic
