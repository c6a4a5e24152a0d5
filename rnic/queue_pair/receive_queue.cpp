#include "rnic/queue_pair/receive_queue.hpp"

#include <algorithm>

#include "rnic/memory/prefetch.hpp"
#include "rnic/tracer.hpp"

namespace weir::rnic {

PostResult ReceiveQueue::post(std::uint64_t wr_id, std::span<const Sge> sges) {
  const QpCapabilities& caps = qp_.config.caps;
  if (sges.size() > caps.max_recv_sge) return PostResult::too_many_sges;
  if (tail_ - polled_.load(std::memory_order_acquire) >= caps.max_recv_wr) return PostResult::full;
  ReceiveWqe& wqe = rings_.wqe(tail_);
  wqe.num_sge = static_cast<std::uint32_t>(sges.size());
  const std::uint32_t length = total_length(sges);
  wqe.length = length;
  posted_[rings_.wqe_place(tail_)] = {wr_id, length};
  std::copy(sges.begin(), sges.end(), wqe.sge);
  ++tail_;
  // The initiator read that line a lap ago and still holds it. Fetch it now, or the doorbell waits for it.
  prefetch_to_write(reinterpret_cast<const std::byte*>(&rings_.wqe(tail_)) + cache_line);
  if (qp_.tracer != nullptr) qp_.tracer->receive_posted(qp_.queue_pair, wr_id, sges);
  return PostResult::ok;
}

std::size_t ReceiveQueue::poll_flushed(std::span<WorkCompletion> out) {
  std::size_t filled = 0;
  std::uint32_t next = polled();
  // seq_cst: this may be the last look before a sleep (publish_completion()).
  const std::uint32_t posted_count = qp_.ctx->rq_posted.load(std::memory_order_seq_cst);
  if (posted_count - next > rings_.wqes()) return 0;  // a neighbour wrote nonsense
  while (next != posted_count && filled < out.size()) {
    out[filled++] = {.wr_id = posted(next++).wr_id,
                     .status = WcStatus::wr_flush_err,
                     .opcode = WcOpcode::recv,
                     .has_imm = false,
                     .has_invalidated = false,
                     .has_grh = false,
                     .byte_len = 0,
                     .imm_be = 0,
                     .qpn = qp_.qpn.value(),
                     .src_qpn = 0,
                     .over_ipv4 = false};
  }
  polled_up_to(next);
  return filled;
}

std::vector<std::uint32_t> ReceiveQueue::keys() const {
  std::vector<std::uint32_t> keys;
  for (std::uint32_t at = polled_.load(std::memory_order_acquire); at != published_; ++at) {
    const ReceiveWqe& wqe = rings_.wqe(at);
    const std::uint32_t pieces = std::min(wqe.num_sge, qp_.config.caps.max_recv_sge);
    for (std::uint32_t i = 0; i < pieces; ++i) keys.push_back(wqe.sge[i].lkey);
  }
  return keys;
}

void ReceiveQueue::reset() {
  tail_ = published_ = 0;
  polled_.store(0, std::memory_order_seq_cst);
}

}  // namespace weir::rnic
