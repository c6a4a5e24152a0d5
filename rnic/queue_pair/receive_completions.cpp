#include "rnic/queue_pair/receive_completions.hpp"

#include "rnic/memory/prefetch.hpp"
#include "rnic/queue_pair/receive_completion.hpp"
#include "rnic/queue_pair/scatter.hpp"
#include "rnic/queue_pair/shared_receive_queue.hpp"
#include "rnic/same_host/responder.hpp"

namespace weir::rnic {

std::size_t ReceiveCompletions::poll(std::span<WorkCompletion> out) {
  if (!rings_.completes()) return 0;
  std::size_t filled = 0;
  SharedReceiveQueue* const srq = qp_.config.srq;
  const std::uint32_t landing_bytes = rings_.landing_bytes();
  while (filled < out.size()) {
    const ReceiveCqe& cqe = rings_.cqe(polled_);
    // Pairs with the initiator's publish: the CQE's fields and payload come after it. seq_cst: this may be
    // the last look before a sleep (publish_completion()).
    if (cqe.sequence.load(std::memory_order_seq_cst) != polled_ + 1) break;
    const std::uint32_t named = read_once(cqe.wqe);
    if (srq != nullptr && named >= srq->max_wrs()) break;  // a neighbour wrote nonsense: never index by it
    const ReceiveWqe& wqe = srq == nullptr ? rings_.wqe(named) : srq->wqe(named);
    const PostedReceive& posted = srq == nullptr ? queue_.posted(named) : srq->posted(named);
    const ArrivedCqe arrived(cqe, posted.length, landing_bytes);
    const WcStatus status = scatter_payload(arrived, wqe);
    const Qpn from(qp_.ctx->remote_qpn.load(std::memory_order_relaxed));
    WorkCompletion& wc = out[filled++];
    wc = receive_completion(arrived, posted.wr_id, status, qp_.qpn, from);
    if (wc.has_invalidated) qp_.nic.windows.finish_invalidate(wc.imm_be, qp_.qpn);
    if (srq != nullptr) srq->free_wqe(named);
    ++polled_;
  }
  if (filled == 0) {
    // While we wait for the next CQE, prefetch its likely payload.
    prefetch_to_read(likely_landing_);
  } else {
    // What arrived is probably a request; its answer will be written there.
    prefetch_to_write(likely_cqe_.load(std::memory_order_relaxed));
    prefetch_to_write(likely_write_.load(std::memory_order_relaxed));
    show_polled(static_cast<std::uint32_t>(filled));
  }
  return filled;
}

std::size_t ReceiveCompletions::unpolled() const {
  if (!rings_.completes()) return 0;
  std::uint32_t next = polled_;
  while (next - polled_ < rings_.completions() &&
         rings_.cqe(next).sequence.load(std::memory_order_acquire) == next + 1)
    ++next;
  return next - polled_;
}

void ReceiveCompletions::append_completed(std::vector<std::uint32_t>& numbers) const {
  for (std::uint32_t count = polled_; count - polled_ < rings_.completions(); ++count) {
    const ReceiveCqe& cqe = rings_.cqe(count);
    if (cqe.sequence.load(std::memory_order_acquire) != count + 1) break;
    numbers.push_back(cqe.wqe);
  }
}

void ReceiveCompletions::prefetch() const {
  if (!rings_.completes()) return;
  prefetch_to_read(&rings_.cqe(polled_));
  if (qp_.config.srq == nullptr) prefetch_to_read(&rings_.wqe(polled_));
}

void ReceiveCompletions::reset() {
  polled_ = 0;
  likely_landing_ = nullptr;
  if (!rings_.completes()) return;
  for (std::uint32_t i = 0; i < rings_.completions(); ++i)
    rings_.cqe(i).sequence.store(0, std::memory_order_relaxed);
}

// Copies the payload that came in the CQE or in the landing ring into the posted buffers.
inline WcStatus ReceiveCompletions::scatter_payload(const ArrivedCqe& cqe, const ReceiveWqe& wqe) {
  if (cqe.status() != WcStatus::success) return cqe.status();
  bool scattered = true;
  if (cqe.payload_at() == PayloadAt::cqe) {
    scattered = scatter(wqe, cqe.payload());
  } else if (cqe.payload_at() == PayloadAt::landing) {
    const std::byte* landing = rings_.landing();
    scattered = scatter(wqe, {landing + cqe.landing_at(), cqe.byte_len()});
    qp_.ctx->landing_head.store(cqe.landing_end(), std::memory_order_release);
    likely_landing_ = landing + (cqe.landing_end() & (rings_.landing_bytes() - 1));
  }
  if (scattered) return WcStatus::success;
  fail_by_own_memory();
  return WcStatus::loc_prot_err;
}

bool ReceiveCompletions::scatter(const ReceiveWqe& wqe, std::span<const std::byte> payload) const {
  const std::uint32_t pd = qp_.config.srq == nullptr ? qp_.config.pd : qp_.config.srq->pd();
  return scatter_into(qp_.nic, pd, wqe, payload);
}

// A class A error of the responder (IBA 9.9.3.1), found only now, after the sender has its completion: the
// queue pair goes to the error state. The progress thread does the rest, because we are under the CQ's lock.
void ReceiveCompletions::fail_by_own_memory() const {
  to_error_state(*qp_.ctx);
  if (const PeerPtr self = qp_.nic.host.peer(qp_.nic.slot, HostPort::Wait::no))
    self->report_fault(qp_.qpn, Fault::operational);
}

// Tells the initiator that the places of that many more CQEs are free again.
inline void ReceiveCompletions::show_polled(std::uint32_t receives) {
  if (qp_.config.srq == nullptr) {
    // In this order: an initiator that finds a receive posted in a place that is free again also finds room
    // for its completion, and never waits for it.
    qp_.ctx->cqe_polled.store(polled_, std::memory_order_release);
    queue_.polled_up_to(queue_.polled() + receives);
  } else {
    // seq_cst with the look at `initiator_parked`: an initiator may wait for room in this ring.
    qp_.ctx->cqe_polled.store(polled_, std::memory_order_seq_cst);
    qp_.kick_initiator_if_parked();
  }
}

}  // namespace weir::rnic
