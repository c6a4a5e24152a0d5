#include "rnic/queue_pair/xrc_completions.hpp"

#include <bit>

namespace weir::rnic {

XrcCompletions::XrcCompletions(Segment& segment, SrqContext& ctx, std::uint32_t wrs)
    : segment_(segment), ctx_(ctx), mask_(2 * std::bit_ceil(wrs) - 1) {
  offset_ = segment.allocate(sizeof(XrcCompletion) * (mask_ + std::size_t{1}));
  if (offset_ == 0) return;
  slots_ = segment.at<XrcCompletion>(offset_);
  open_slots(slots_, mask_, 0, mask_ + 1);
  ctx.completions_offset = offset_;
  ctx.completions_mask = mask_;
  ctx.completion_next.store(0, std::memory_order_relaxed);
  ctx.completions_opened.store(mask_ + 1, std::memory_order_release);
}

XrcCompletions::~XrcCompletions() {
  if (offset_ != 0) segment_.free(offset_, sizeof(XrcCompletion) * (mask_ + std::size_t{1}));
}

const XrcCompletion* XrcCompletions::next() {
  for (;;) {
    const XrcCompletion& slot = slots_[polled_ & mask_];
    const SlotClaim claim = SlotClaim::unpack(slot.claim.load(std::memory_order_seq_cst));
    if (claim.sequence != polled_ || claim.state != SlotState::complete) return nullptr;
    if (slot.cqe.wqe != no_wqe) return &slot;
    take();
  }
}

void XrcCompletions::take() {
  const std::uint32_t next = polled_ + mask_ + 1;
  open_slots(slots_, mask_, next, next + 1);
  ++polled_;
  ctx_.completions_opened.store(next + 1, std::memory_order_release);
}

std::size_t XrcCompletions::unpolled() const {
  std::uint32_t at = polled_;
  while (at - polled_ <= mask_) {
    const SlotClaim claim = SlotClaim::unpack(slots_[at & mask_].claim.load(std::memory_order_acquire));
    if (claim.sequence != at || claim.state != SlotState::complete) break;
    ++at;
  }
  return at - polled_;
}

bool XrcCompletions::void_slots_of(Slot dead) {
  bool any = false;
  for (std::uint32_t i = 0; i <= mask_; ++i) {
    const SlotClaim claim = SlotClaim::unpack(slots_[i].claim.load(std::memory_order_acquire));
    if (claim.state != SlotState::claimed || claim.claimer != dead) continue;
    slots_[i].cqe.wqe = no_wqe;  // returns its WQE (SharedReceiveQueue::reclaim)
    complete_slot(slots_[i]);
    any = true;
  }
  return any;
}

void XrcCompletions::append_completed(std::vector<std::uint32_t>& numbers) const {
  for (std::uint32_t i = 0; i <= mask_; ++i)
    if (SlotClaim::unpack(slots_[i].claim.load(std::memory_order_acquire)).state == SlotState::complete)
      numbers.push_back(slots_[i].cqe.wqe);
}

}  // namespace weir::rnic
