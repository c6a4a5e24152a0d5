// The completer: turns what has finished on a queue pair into work completions, under the lock of the CQ
// polled.
//
// Sends: WQEs between polled and executed; unsignalled successes are skipped and freed by the completion
// behind them. Receives: receive_side.hpp.
#include <utility>

#include "rnic/queue_pair/queue_pair.hpp"

namespace weir::rnic {
namespace {

WcOpcode completion_opcode(SendOpcode opcode) {
  switch (opcode) {
    case SendOpcode::rdma_write:
    case SendOpcode::rdma_write_with_imm:
      return WcOpcode::rdma_write;
    case SendOpcode::rdma_read:
      return WcOpcode::rdma_read;
    case SendOpcode::compare_and_swap:
      return WcOpcode::compare_and_swap;
    case SendOpcode::fetch_and_add:
      return WcOpcode::fetch_and_add;
    case SendOpcode::atomic_write:
      return WcOpcode::atomic_write;
    case SendOpcode::local_invalidate:
      return WcOpcode::local_invalidate;
    case SendOpcode::bind_window:
      return WcOpcode::bind_window;
    default:
      return WcOpcode::send;
  }
}

}  // namespace

// Sends first, but for a call after one whose array they filled: a program that posts a send for each that
// completes would otherwise never hear of what arrived, and post no receives.
std::size_t QueuePair::poll_completions(CompletionQueue& cq, std::span<WorkCompletion> out) {
  std::size_t filled = 0;
  const auto poll_arrived = [&] {
    if (&cq == qp_.config.recv_cq && filled != out.size()) filled += receive_side_.poll(out.subspan(filled));
  };
  const bool one_cq = qp_.config.send_cq == qp_.config.recv_cq;  // else its polls are under two locks
  const bool arrived_first = one_cq && std::exchange(sends_filled_, false);
  if (arrived_first) poll_arrived();
  if (&cq == qp_.config.send_cq) {
    const std::size_t sent = poll_sends(out.subspan(filled));
    if (sent != 0) qp_.counters.send_completions.add(sent);
    filled += sent;
    if (one_cq) sends_filled_ = sent != 0 && filled == out.size() && !arrived_first;
  }
  if (!arrived_first) poll_arrived();
  return filled;
}

std::size_t QueuePair::unpolled(const CompletionQueue& cq) const {
  std::size_t count = 0;
  const std::uint32_t executed = sq_.executed.load(std::memory_order_acquire);
  for (std::uint32_t at = send_scanned_; &cq == qp_.config.send_cq && at != executed; ++at)
    if (sq_.at(at).signaled || sq_.at(at).status != WcStatus::success) ++count;
  return &cq == qp_.config.recv_cq ? count + receive_side_.unpolled() : count;
}

// What was looked at stays looked at (send_scanned_): with one signal for hundreds of writes, walking the
// unsignalled ones again in each poll would cost more than everything else. Entries are freed only by a
// completion behind them.
std::size_t QueuePair::poll_sends(std::span<WorkCompletion> out) {
  // seq_cst: this may be the last look before a sleep (publish_completion()).
  const std::uint32_t executed = sq_.executed.load(std::memory_order_seq_cst);
  std::size_t filled = 0;
  while (send_scanned_ != executed && filled < out.size()) {
    const SendWqe& wqe = sq_.at(send_scanned_++);
    if (!wqe.signaled && wqe.status == WcStatus::success) continue;
    out[filled++] = {.wr_id = wqe.wr_id,
                     .status = wqe.status,
                     .opcode = completion_opcode(wqe.opcode),
                     .has_imm = false,
                     .has_invalidated = false,
                     .has_grh = false,
                     .byte_len = wqe.byte_len,
                     .imm_be = 0,
                     .qpn = qp_.qpn.value(),
                     .src_qpn = 0,
                     .over_ipv4 = false};
    sq_.polled.store(send_scanned_, std::memory_order_release);
  }
  return filled;
}

}  // namespace weir::rnic
