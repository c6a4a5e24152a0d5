#include "rnic/queue_pair/send_side.hpp"

#include <algorithm>

#include "rnic/tracer.hpp"
#include "rnic/transport_operations.hpp"

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

SendSide::SendSide(const QpCommon& qp)
    : qp_(qp), ring_(qp.config.caps.max_send_wr, qp.config.caps.max_send_sge, qp.config.caps.max_inline) {}

SendWqe* SendSide::append(const SendRequest& request, PostResult& result) {
  const QpState in = qp_.state();
  if (in == QpState::reset || in == QpState::init || in == QpState::rtr) {
    result = PostResult::bad_state;
    return nullptr;
  }
  if (!has_opcode(qp_.config.type, request.opcode)) {
    result = PostResult::bad_opcode;
    return nullptr;
  }
  if (ring_.full()) {
    result = PostResult::full;
    return nullptr;
  }
  SendWqe& wqe = ring_.at(ring_.tail++);
  wqe.wr_id = request.wr_id;
  wqe.opcode = request.opcode;
  wqe.status = WcStatus::success;
  wqe.signaled = qp_.config.signal_all || (request.flags & send_flag::signaled);
  wqe.solicited = request.flags & send_flag::solicited;
  wqe.inlined = false;
  wqe.fenced = request.flags & send_flag::fence;
  wqe.inline_bytes = 0;
  wqe.num_sge = 0;
  wqe.imm_be = request.imm_be;
  wqe.byte_len = 0;
  wqe.remote_addr = request.remote_addr;
  wqe.rkey = request.rkey;
  wqe.remote_srqn = request.remote_srqn;
  wqe.path_kbps = request.path_kbps;
  if (qp_.config.type == QpType::ud)
    wqe.datagram = request.datagram;
  else if (request.opcode == SendOpcode::bind_window)
    wqe.binding = request.binding;
  else
    wqe.atomic = request.atomic;
  result = PostResult::ok;
  return &wqe;
}

PostResult SendSide::set_sges(SendWqe& wqe, std::span<const Sge> sges) const {
  if (sges.size() > qp_.config.caps.max_send_sge) return PostResult::too_many_sges;
  std::copy(sges.begin(), sges.end(), wqe.sges());
  wqe.num_sge = static_cast<std::uint8_t>(sges.size());
  return PostResult::ok;
}

PostResult SendSide::add_inline(SendWqe& wqe, std::span<const std::byte> piece) const {
  // Data that comes back needs memory to land in (ibv_post_send(3): inline only for SEND and RDMA WRITE).
  if (wqe.opcode >= SendOpcode::rdma_read && wqe.opcode <= SendOpcode::fetch_and_add)
    return PostResult::bad_opcode;
  wqe.inlined = true;
  if (piece.size() > qp_.config.caps.max_inline - wqe.inline_bytes) return PostResult::too_long_inline;
  std::copy(piece.begin(), piece.end(), wqe.inline_data() + wqe.inline_bytes);
  wqe.inline_bytes += static_cast<std::uint32_t>(piece.size());
  return PostResult::ok;
}

void SendSide::publish() {
  for (std::uint32_t at = ring_.doorbell; qp_.tracer != nullptr && at != ring_.tail; ++at)
    qp_.tracer->posted(qp_.queue_pair, ring_.at(at));
  ring_.doorbell = ring_.tail;
  qp_.counters.doorbells.add(1);
}

void SendSide::complete(SendWqe& wqe, WcStatus status) {
  if (qp_.tracer != nullptr) qp_.tracer->finished(qp_.queue_pair, wqe, status);
  wqe.status = status;
  const bool reported = wqe.signaled || status != WcStatus::success;
  if (status != WcStatus::success) qp_.counters.count_failed(status);
  // At least release: the poller's acquire of `executed` must see status and byte_len. There is one writer,
  // which holds the send lock.
  const std::uint32_t executed = ring_.executed.load(std::memory_order_relaxed) + 1;
  if (!reported) return ring_.executed.store(executed, std::memory_order_release);
  publish_completion(ring_.executed, executed, *qp_.sends.cq);
  qp_.raise(qp_.sends, status == WcStatus::success ? Solicited::no : Solicited::yes);
}

void SendSide::fail(SendWqe& wqe, WcStatus status) {
  complete(wqe, status);
  qp_.whole.enter_error();
}

void SendSide::flush() {
  while (!all_executed()) complete(next(), WcStatus::wr_flush_err);
}

// IBA 10.3.1.5: raises the affiliated event if modify asked for it.
void SendSide::drained() {
  if (!draining_.exchange(false, std::memory_order_acq_rel) || !qp_.attributes.sqd_event) return;
  qp_.nic.host.async_event(AsyncEvent::sq_drained, &qp_.queue_pair, nullptr);
}

// Only a later completion frees the entries before it.
std::size_t SendSide::poll(std::span<WorkCompletion> out) {
  // seq_cst: this may be the last look before a sleep (publish_completion()).
  const std::uint32_t executed = ring_.executed.load(std::memory_order_seq_cst);
  std::size_t filled = 0;
  while (scanned_ != executed && filled < out.size()) {
    const SendWqe& wqe = ring_.at(scanned_++);
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
    ring_.polled.store(scanned_, std::memory_order_release);
  }
  return filled;
}

std::size_t SendSide::unpolled() const {
  std::size_t count = 0;
  const std::uint32_t executed = ring_.executed.load(std::memory_order_acquire);
  for (std::uint32_t at = scanned_; at != executed; ++at)
    if (ring_.at(at).signaled || ring_.at(at).status != WcStatus::success) ++count;
  return count;
}

void SendSide::reset() {
  ring_.reset();
  scanned_ = 0;
}

}  // namespace weir::rnic
