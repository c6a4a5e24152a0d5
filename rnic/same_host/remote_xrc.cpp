// The responder's role towards an XRC SRQ (IBA annex A14), played by the initiator: finding the SRQ that a
// message names, and the slots for its completions.
//
// The SRQ may belong to another process than the queue pair: its number names the process. Everything that
// acts on memory then uses the SRQ's process alone (memory_): protection table, CQ, wake-ups. The queue pair
// determines whether it answers us and with which rights, and takes the error when a message is refused.
#include <utility>

#include "rnic/memory/arrived.hpp"
#include "rnic/memory/claimed_ring.hpp"
#include "rnic/queue_pair/completion_signal.hpp"
#include "rnic/same_host/responder.hpp"

namespace weir::rnic {

bool RemoteQueuePair::srq_selected(Qpn srqn) const {
  return xrc_completions_ != nullptr && srqn_ == srqn && memory_->alive() && srq_stands();
}

// Checked during an operation, too: the owner closes the SRQ and then waits for initiators inside.
bool RemoteQueuePair::srq_stands() const {
  if (xrc_completions_ == nullptr) return true;
  const SrqContext& srq = srq_.context();
  return srq.xrcd.load(std::memory_order_seq_cst) == ctx_->xrcd && srq.incarnation == srq_incarnation_;
}

// IBA A14.3.1: the number must be that of an XRC SRQ of the target's domain.
Outcome RemoteQueuePair::select_srq(Qpn srqn, const PeerPtr& of) {
  give_up_send();  // what an earlier try took belongs to an SRQ that is gone
  xrc_completions_ = nullptr;
  srq_ = RemoteSrq();  // it points into the process that we release
  memory_ = of;
  const Operation operation(*this, any_receive);
  if (const Outcome begun = operation.admitted(); begun != Outcome::done) return begun;
  const std::uint64_t domain = ctx_->xrcd.load(std::memory_order_seq_cst);
  // It may be just about to be destroyed; then it does not answer.
  if (domain == 0 || ctx_->type != static_cast<std::uint16_t>(QpType::xrc_recv)) return Outcome::no_response;
  const bool exists = of && of->alive() && srqn.index() < max_srqs &&
                      of->segment().srqs[srqn.index()].xrcd.load(std::memory_order_seq_cst) == domain;
  if (!exists) return nak(Outcome::nak_invalid, WcStatus::loc_qp_op_err, nullptr, {});
  const SrqContext& srq = of->segment().srqs[srqn.index()];
  srq_incarnation_ = srq.incarnation;
  xrc_mask_ = srq.completions_mask;
  auto* completions = at_offset<XrcCompletion>(of->segment_base(), of->segment_size(), srq.completions_offset,
                                               std::uint64_t{xrc_mask_} + 1);
  cq_index_ = read_once(srq.cq);
  cq_line_ = read_once(srq.cq_line);
  const bool sane = srq_.connect(*of, srqn.index()) && cq_index_ < max_cqs && cq_line_ < max_qps;
  if (!sane || completions == nullptr) return Outcome::no_response;
  pd_ = srq.pd;
  wqe_max_sge_ = srq_.max_sge();
  cq_ = &of->segment().cqs[cq_index_];
  srqn_ = srqn;
  if (!spare_cqe_) spare_cqe_ = std::make_unique<ReceiveCqe>();
  xrc_completions_ = completions;
  return Outcome::done;
}

std::optional<Slot> RemoteQueuePair::opener() const {
  for (std::uint32_t slot = 0; openers_ != nullptr && slot < max_slots; ++slot)
    if (openers_->nic[slot].load(std::memory_order_seq_cst) != 0) return static_cast<Slot>(slot);
  return std::nullopt;
}

bool RemoteQueuePair::keep_by(PeerPtr opener) {
  const std::uint32_t noted = openers_->nic[opener->slot()].load(std::memory_order_seq_cst);
  if (!opener->alive() || noted != opener_number(opener->segment())) return false;
  keeper_ = std::move(opener);
  return true;
}

bool RemoteQueuePair::kept() const {
  return keeper_ && keeper_->alive() && openers_->nic[keeper_->slot()].load(std::memory_order_seq_cst) != 0;
}

void RemoteQueuePair::forget_opener(Slot slot) {
  openers_->nic[slot % max_slots].store(0, std::memory_order_seq_cst);
}

ReceiveCqe& RemoteQueuePair::next_xrc_completion() {
  if (xrc_claimed_ != nullptr) return xrc_claimed_->cqe;
  SrqContext& srq = srq_.context();
  xrc_claimed_ =
      claim_slot(srq.completion_next, srq.completions_opened, xrc_completions_, xrc_mask_, own_.slot());
  return xrc_claimed_ != nullptr ? xrc_claimed_->cqe : *spare_cqe_;
}

void RemoteQueuePair::complete_xrc() {
  if (xrc_claimed_ == nullptr) return;
  xrc_claimed_->qpn = target_.value();
  xrc_claimed_->src_qpn = Qpn(connection_.answers_to).value();
  complete_slot(*xrc_claimed_);
  xrc_claimed_ = nullptr;
}

// A slot that nobody completes would be a hole at which polling stops.
void RemoteQueuePair::give_up_xrc_completion() {
  if (xrc_claimed_ == nullptr) return;
  // A guest, so that the SRQ's owner waits. Not an operation on the target, which may be another process's.
  const GuestOperation guest(memory_->segment(), own_, guest_hint_);
  if (guest.inside() && srq_stands()) {
    xrc_claimed_->cqe.wqe = no_wqe;
    complete_slot(*xrc_claimed_);
    mark_ready(*cq_, cq_line_);
  }
  xrc_claimed_ = nullptr;
}

}  // namespace weir::rnic
