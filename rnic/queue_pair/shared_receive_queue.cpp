#include "rnic/queue_pair/shared_receive_queue.hpp"

#include <algorithm>
#include <bit>
#include <mutex>

#include "rnic/queue_pair/receive_completion.hpp"
#include "rnic/queue_pair/scatter.hpp"
#include "rnic/tracer.hpp"

namespace weir::rnic {

SharedReceiveQueue::SharedReceiveQueue(Segment& segment, Qpn number, std::uint32_t pd, std::uint32_t wrs,
                                       std::uint32_t sges, const XrcConfig& xrc)
    : segment_(segment),
      number_(number),
      xrc_config_(xrc),
      index_(number.index()),
      pd_(pd),
      wrs_(wrs),
      sges_(sges),
      ring_mask_(std::bit_ceil(wrs) - 1),
      stride_((sizeof(ReceiveWqe) + sizeof(Sge) * (sges ? sges - 1 : 0) + 31) / 32 * 32),
      claimer_(wrs),
      posted_at_(wrs),
      posted_(wrs),
      outstanding_(wrs) {
  ring_offset_ = segment.allocate((ring_mask_ + std::size_t{1}) * sizeof(std::uint64_t));
  wqe_offset_ = segment.allocate(std::size_t{stride_} * wrs);
  if (!ring_offset_ || !wqe_offset_) return;

  SrqContext& ctx = segment.header().srqs[index_];
  ++ctx.incarnation;
  ctx.xrcd = 0;
  if (xrc.xrcd != 0) {
    completions_ = std::make_unique<XrcCompletions>(segment, ctx, wrs);
    if (!completions_->valid()) return;
  }
  ctx_ = &ctx;
  ctx_->pd = pd;
  ctx_->ring_mask = ring_mask_;
  ctx_->wqe_stride = stride_;
  ctx_->wqe_count = wrs;
  ctx_->ring_offset = ring_offset_;
  ctx_->wqe_offset = wqe_offset_;
  ctx_->limit = 0;
  ctx_->next = 0;
  ctx_->posted = 0;
  ctx_->parked = 0;
  for (auto& word : ctx_->parked_slots) word = 0;
  ring_ = segment.at<std::atomic<std::uint64_t>>(ring_offset_);
  for (std::uint32_t i = wrs; i > 0; --i) free_.push_back(i - 1);
}

SharedReceiveQueue::~SharedReceiveQueue() {
  if (keeps_rings_.load(std::memory_order_relaxed)) {
    if (completions_) completions_->keep_ring();
    return;
  }
  if (ring_offset_) segment_.free(ring_offset_, (ring_mask_ + std::size_t{1}) * sizeof(std::uint64_t));
  if (wqe_offset_) segment_.free(wqe_offset_, std::size_t{stride_} * wrs_);
}

void SharedReceiveQueue::open(std::uint32_t cq_index, std::uint32_t cq_line) {
  ctx_->cq = cq_index;
  ctx_->cq_line = cq_line_ = cq_line;
  ctx_->xrcd = xrc_config_.xrcd;
}

ReceiveWqe& SharedReceiveQueue::wqe(std::uint32_t number) const {
  return *segment_.at<ReceiveWqe>(wqe_offset_ + std::uint64_t{stride_} * number);
}

SharedReceiveQueue::Posted SharedReceiveQueue::post(std::uint64_t wr_id, std::span<const Sge> sges,
                                                    Tracer* tracer) {
  const std::lock_guard lock(lock_);
  if (free_.empty() || ring_full()) return Posted::full;
  const std::uint32_t number = free_.back();
  ReceiveWqe& w = wqe(number);
  w.num_sge = static_cast<std::uint32_t>(sges.size());
  const std::uint32_t length = total_length(sges);
  w.length = length;
  posted_[number] = {wr_id, length};
  std::copy(sges.begin(), sges.end(), w.sge);
  free_.pop_back();
  outstanding_[number] = true;
  // Trace before others can take it, or its completion could be logged first.
  if (tracer != nullptr) tracer->receive_posted(number_, wr_id, sges);
  post_number(number);
  return Posted::ok;
}

std::size_t SharedReceiveQueue::poll_completions(const NicParts& nic, std::span<WorkCompletion> out) {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const XrcCompletion* const completion = completions_->next();
    if (completion == nullptr) break;
    const ReceiveCqe& cqe = completion->cqe;
    const std::uint32_t number = read_once(cqe.wqe);
    if (number >= wrs_) {  // a neighbour wrote nonsense: never index by it
      completions_->take();
      continue;
    }
    const ReceiveWqe& received = wqe(number);
    const ArrivedCqe arrived(cqe, posted_[number].length, 0);
    WcStatus status = arrived.status();
    if (status == WcStatus::success && arrived.payload_at() == PayloadAt::cqe &&
        !scatter_into(nic, pd_, received, arrived.payload()))
      status = WcStatus::loc_prot_err;
    // A queue pair's messages may go to several SRQs, each polled by its own thread.
    const Qpn by(read_once(completion->qpn));
    SegmentHeader& header = nic.segment.header();
    QpCounters& counters = by.slot() == nic.slot ? header.qp_counters[by.index()] : header.counters.retired;
    (status == WcStatus::success ? counters.receives : counters.receive_errors).shared_add(1);
    WorkCompletion& wc = out[filled++];
    wc = receive_completion(arrived, posted_[number].wr_id, status, by, Qpn(read_once(completion->src_qpn)));
    if (wc.has_invalidated) nic.windows.finish_invalidate(wc.imm_be, by);
    completions_->take();
    free_wqe(number);
  }
  return filled;
}

std::vector<std::uint32_t> SharedReceiveQueue::receive_keys() {
  std::vector<std::uint32_t> keys;
  const std::lock_guard lock(lock_);
  for (std::uint32_t number = 0; number < wrs_; ++number) {
    if (!outstanding_[number]) continue;
    const ReceiveWqe& w = wqe(number);
    for (std::uint32_t i = 0; i < std::min(w.num_sge, sges_); ++i) keys.push_back(w.sge[i].lkey);
  }
  return keys;
}

bool SharedReceiveQueue::ring_full() const {
  const std::uint32_t posted = ctx_->posted.load(std::memory_order_relaxed);
  return posted - ctx_->next.load(std::memory_order_acquire) > ring_mask_;
}

// The ring must not be full; other threads only make more room in it.
void SharedReceiveQueue::post_number(std::uint32_t number) {
  const std::uint32_t count = ctx_->posted.load(std::memory_order_relaxed);
  std::atomic<std::uint64_t>& entry = ring_[count & ring_mask_];
  note_claimer(count & ring_mask_);
  claimer_[number] = Qpn();
  posted_at_[number] = count;
  const SrqClaim claim{static_cast<std::uint16_t>(count / (ring_mask_ + 1)),
                       static_cast<std::uint16_t>(number), Qpn(), ClaimState::posted};
  // release: the claimer's acquire of the entry must see the WQE's sges.
  entry.store(claim.pack(), std::memory_order_release);
  // seq_cst: pairs with an initiator that sets `parked` and then re-reads `posted`; one must see the other.
  ctx_->posted.store(count + 1, std::memory_order_seq_cst);
}

// A ring entry is about to be overwritten: remember who claimed its WQE, in case that process dies later. An
// entry whose WQE has been posted again since is out of date and ignored.
void SharedReceiveQueue::note_claimer(std::uint32_t ring_index) {
  const SrqClaim claim = SrqClaim::unpack(ring_[ring_index].load(std::memory_order_acquire));
  if (claim.state != ClaimState::claimed || claim.wqe >= wrs_) return;
  const std::uint32_t posted_at = posted_at_[claim.wqe];
  const bool current = (posted_at & ring_mask_) == ring_index &&
                       static_cast<std::uint16_t>(posted_at / (ring_mask_ + 1)) == claim.lap;
  if (current) claimer_[claim.wqe] = claim.claimer;
}

void SharedReceiveQueue::free_wqe(std::uint32_t number) {
  const std::lock_guard lock(lock_);
  if (number >= wrs_ || !outstanding_[number]) return;
  outstanding_[number] = false;
  free_.push_back(number);
}

void SharedReceiveQueue::reclaim(Slot dead, const std::vector<std::uint32_t>& completed) {
  const std::lock_guard lock(lock_);
  for (std::uint32_t i = 0; i <= ring_mask_; ++i) note_claimer(i);
  for (std::uint32_t number = 0; number < wrs_; ++number) post_again(number, dead, completed);
}

void SharedReceiveQueue::give_back(Slot from, std::uint32_t number,
                                   const std::vector<std::uint32_t>& completed) {
  const std::lock_guard lock(lock_);
  for (std::uint32_t i = 0; i <= ring_mask_; ++i) note_claimer(i);
  if (number < wrs_) post_again(number, from, completed);
}

// Call under lock_, after note_claimer().
void SharedReceiveQueue::post_again(std::uint32_t number, Slot claimer,
                                    const std::vector<std::uint32_t>& completed) {
  if (!outstanding_[number] || claimer_[number].value() == 0 || claimer_[number].slot() != claimer) return;
  if (std::find(completed.begin(), completed.end(), number) == completed.end() && !ring_full())
    post_number(number);
}

}  // namespace weir::rnic
