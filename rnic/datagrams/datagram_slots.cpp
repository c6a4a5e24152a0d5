#include "rnic/datagrams/datagram_slots.hpp"

#include <algorithm>

#include "rnic/memory/claimed_ring.hpp"
#include "rnic/queue_pair/scatter.hpp"
#include "rnic/queue_pair/shared_receive_queue.hpp"

namespace weir::rnic {
namespace {

constexpr std::byte ip_version_6{6};

}  // namespace

void DatagramSlots::open(std::uint32_t from, std::uint32_t to) {
  open_slots(rings_.slots(), rings_.completion_mask(), from, to);
}

void DatagramSlots::open_all() {
  if (qp_.ctx->rq_posted.load(std::memory_order_relaxed) != 0) return;
  open(0, rings_.completions());
  qp_.ctx->rq_posted.store(rings_.completions(), std::memory_order_release);
}

void DatagramSlots::reopen(std::uint32_t polled) {
  const std::uint32_t next = polled + rings_.completions();
  open(next, next + 1);
  queue_.polled_up_to(polled + 1);
  qp_.ctx->rq_posted.store(next + 1, std::memory_order_release);
}

std::size_t DatagramSlots::poll(std::span<WorkCompletion> out) {
  SharedReceiveQueue* const srq = qp_.config.srq;
  std::size_t filled = 0;
  while (filled < out.size()) {
    const std::uint32_t polled = queue_.polled();
    // Read this before the slot, which shows old content from before a reset until it is opened. Both
    // seq_cst: see publish_completion().
    if (polled == qp_.ctx->rq_posted.load(std::memory_order_seq_cst)) break;
    DatagramSlot& slot = rings_.slot(polled);
    const SlotClaim claim = SlotClaim::unpack(slot.claim.load(std::memory_order_seq_cst));
    if (claim.sequence != polled || claim.state != SlotState::complete) break;
    const std::uint32_t number = read_once(slot.wqe);
    if (srq != nullptr && number >= srq->max_wrs()) {  // dropped
      reopen(polled);
      continue;
    }
    const ReceiveWqe& wqe = srq == nullptr ? rings_.wqe(polled) : srq->wqe(number);
    const PostedReceive& posted = srq == nullptr ? queue_.posted(polled) : srq->posted(number);
    const std::uint32_t pd = srq == nullptr ? qp_.config.pd : srq->pd();
    const std::uint32_t byte_len = std::min(read_once(slot.byte_len), grh_bytes + max_datagram_bytes);
    WcStatus status = byte_len > posted.length ? WcStatus::loc_len_err : WcStatus::success;
    if (status == WcStatus::success && !scatter_into(qp_.nic, pd, wqe, {slot.bytes, byte_len}))
      status = WcStatus::loc_prot_err;
    if (status == WcStatus::success && slot.multicast) qp_.counters.multicasts.add(1);
    out[filled++] = {.wr_id = posted.wr_id,
                     .status = status,
                     .opcode = WcOpcode::recv,
                     .has_imm = slot.has_imm,
                     .has_invalidated = false,
                     .has_grh = qp_.config.type == QpType::ud,
                     .byte_len = byte_len,
                     .imm_be = slot.imm_be,
                     .qpn = qp_.qpn.value(),
                     .src_qpn = slot.src_qpn,
                     .over_ipv4 = (slot.bytes[0] >> 4) != ip_version_6};
    if (srq == nullptr) {
      queue_.polled_up_to(polled + 1);
    } else {
      srq->free_wqe(number);
      reopen(polled);
    }
  }
  return filled;
}

std::size_t DatagramSlots::unpolled() const {
  const std::uint32_t posted = qp_.ctx->rq_posted.load(std::memory_order_acquire);
  const std::uint32_t polled = queue_.polled();
  std::uint32_t next = polled;
  while (next != posted) {
    const SlotClaim claim = SlotClaim::unpack(rings_.slot(next).claim.load(std::memory_order_acquire));
    if (claim.sequence != next || claim.state != SlotState::complete) break;
    ++next;
  }
  return next - polled;
}

void DatagramSlots::append_completed(std::vector<std::uint32_t>& numbers) const {
  for (std::uint32_t i = 0; i < rings_.completions(); ++i) {
    const DatagramSlot& slot = rings_.slot(i);
    if (SlotClaim::unpack(slot.claim.load(std::memory_order_acquire)).state == SlotState::complete)
      numbers.push_back(slot.wqe);
  }
}

void DatagramSlots::void_claims_of(Slot dead) {
  for (std::uint32_t i = 0; i < rings_.completions(); ++i) {
    DatagramSlot& slot = rings_.slot(i);
    const SlotClaim claim = SlotClaim::unpack(slot.claim.load(std::memory_order_acquire));
    if (claim.state != SlotState::claimed || claim.claimer != dead) continue;
    slot.byte_len = qp_.config.type == QpType::ud ? grh_bytes : 0;
    slot.has_imm = false;
    slot.multicast = false;
    slot.wqe = no_wqe;  // returns its WQE (SharedReceiveQueue::reclaim)
    complete_slot(slot);
    qp_.raise(qp_.receives, Solicited::no);
  }
}

}  // namespace weir::rnic
