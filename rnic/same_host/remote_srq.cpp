#include "rnic/same_host/remote_srq.hpp"

namespace weir::rnic {

bool RemoteSrq::connect(Peer& peer, std::uint32_t index) {
  ctx_ = nullptr;
  if (index >= max_srqs) return false;
  SrqContext& ctx = peer.segment().srqs[index];
  std::byte* base = peer.segment_base();
  const std::size_t bytes = peer.segment_size();
  ring_mask_ = ctx.ring_mask;
  ring_ = at_offset<std::atomic<std::uint64_t>>(base, bytes, ctx.ring_offset, std::uint64_t{ring_mask_} + 1);
  stride_ = ctx.wqe_stride;
  count_ = ctx.wqe_count;
  wqes_ = at_offset<std::byte>(base, bytes, ctx.wqe_offset, std::uint64_t{stride_} * count_);
  if (ring_ == nullptr || wqes_ == nullptr || stride_ < sizeof(ReceiveWqe)) return false;
  peer_ = &peer;
  index_ = index;
  incarnation_ = ctx.incarnation;
  ctx_ = &ctx;
  return true;
}

bool RemoteSrq::available() const {
  const std::uint32_t next = ctx_->next.load(std::memory_order_acquire);
  // The same check as in claim(); if the two disagreed on nonsense, the requester would retry for ever.
  return ctx_->posted.load(std::memory_order_seq_cst) - next - 1 <= ring_mask_;
}

// Any number of initiators, in any process, may be here at once. The claim is one compare-exchange on the
// ring entry that also names us; `next` is only a hint of where to look. Every initiator helps it forward, so
// one that dies right after its claim holds nobody up.
bool RemoteSrq::claim(Qpn own, TakenReceive& taken) const {
  const std::uint32_t entries = ring_mask_ + 1;
  // A bound, in case the target's words keep changing under us.
  for (std::uint64_t tries = 0; tries < 2ull * entries + 1024; ++tries) {
    std::uint32_t count = ctx_->next.load(std::memory_order_acquire);
    const std::uint32_t posted = ctx_->posted.load(std::memory_order_seq_cst);
    if (count == posted) return false;
    if (posted - count > entries) {
      // Further ahead than the ring's size: we read an old `next`, or the target's words are nonsense.
      if (ctx_->next.load(std::memory_order_acquire) == count) return false;
      continue;
    }
    std::uint64_t word = ring_[count & ring_mask_].load(std::memory_order_acquire);
    SrqClaim claim = SrqClaim::unpack(word);
    const bool ours_to_take =
        claim.state == ClaimState::posted && claim.lap == static_cast<std::uint16_t>(count / entries);
    if (ours_to_take) {
      claim.state = ClaimState::claimed;
      claim.claimer = own;
      if (!ring_[count & ring_mask_].compare_exchange_strong(word, claim.pack(), std::memory_order_acq_rel))
        continue;
    }
    ctx_->next.compare_exchange_strong(count, count + 1, std::memory_order_acq_rel);
    if (!ours_to_take) continue;
    if (claim.wqe >= count_) return false;
    taken.number = claim.wqe;
    taken.wqe = reinterpret_cast<const ReceiveWqe*>(wqes_ + std::size_t{stride_} * claim.wqe);
    std::uint32_t limit = ctx_->limit.load(std::memory_order_relaxed);
    if (limit != 0 && posted - count - 1 < limit && ctx_->limit.compare_exchange_strong(limit, 0))
      peer_->report_srq_limit(index_);
    return true;
  }
  return false;
}

void RemoteSrq::give_back(const TakenReceive& taken) const {
  peer_->return_receive({index_, incarnation_, taken.number});
}

}  // namespace weir::rnic
