// Posting sends: work requests become WQEs in the send ring, and the doorbell publishes them.
//
// Nothing here looks at the peer but to kick it; what a doorbell sets going is in requester.cpp.
#include <sched.h>

#include <algorithm>

#include "rnic/adapter.hpp"
#include "rnic/queue_pair/queue_pair.hpp"

namespace weir::rnic {
namespace {

// IBA table 35: which operations a transport service has.
constexpr std::uint32_t bit(SendOpcode opcode) { return 1u << static_cast<unsigned>(opcode); }
constexpr std::uint32_t raw_opcodes = bit(SendOpcode::send);
constexpr std::uint32_t ud_opcodes = bit(SendOpcode::send) | bit(SendOpcode::send_with_imm);
constexpr std::uint32_t uc_opcodes = ud_opcodes | bit(SendOpcode::rdma_write) |
                                     bit(SendOpcode::rdma_write_with_imm) | bit(SendOpcode::bind_window) |
                                     bit(SendOpcode::local_invalidate);
constexpr std::uint32_t rc_opcodes = uc_opcodes | bit(SendOpcode::rdma_read) |
                                     bit(SendOpcode::compare_and_swap) | bit(SendOpcode::fetch_and_add) |
                                     bit(SendOpcode::send_with_invalidate) | bit(SendOpcode::atomic_write);

bool has_opcode(QpType type, SendOpcode opcode) {
  if (static_cast<unsigned>(opcode) >= 32) return false;
  switch (type) {
    case QpType::rc:
    case QpType::xrc_send:
      return rc_opcodes & bit(opcode);
    case QpType::uc:
      return uc_opcodes & bit(opcode);
    case QpType::ud:
      return ud_opcodes & bit(opcode);
    case QpType::raw_packet:
      return raw_opcodes & bit(opcode);
    case QpType::xrc_recv:
    case QpType::work_queue:
    case QpType::rss:
      break;
  }
  return false;
}

}  // namespace

SendWqe* QueuePair::append(const SendRequest& request, PostResult& result) {
  const QpState in = state();
  if (in == QpState::reset || in == QpState::init || in == QpState::rtr) {
    result = PostResult::bad_state;
    return nullptr;
  }
  if (!has_opcode(qp_.config.type, request.opcode)) {
    result = PostResult::bad_opcode;
    return nullptr;
  }
  if (sq_.full()) {
    result = PostResult::full;
    return nullptr;
  }
  SendWqe& wqe = sq_.at(sq_.tail++);
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

PostResult QueuePair::set_sges(SendWqe& wqe, std::span<const Sge> sges) {
  if (sges.size() > qp_.config.caps.max_send_sge) return PostResult::too_many_sges;
  std::copy(sges.begin(), sges.end(), wqe.sges());
  wqe.num_sge = static_cast<std::uint8_t>(sges.size());
  return PostResult::ok;
}

PostResult QueuePair::add_inline(SendWqe& wqe, std::span<const std::byte> piece) {
  // What comes back needs a place of its own (ibv_post_send(3): inline only for SEND and RDMA WRITE).
  if (wqe.opcode >= SendOpcode::rdma_read && wqe.opcode <= SendOpcode::fetch_and_add)
    return PostResult::bad_opcode;
  wqe.inlined = true;
  if (piece.size() > qp_.config.caps.max_inline - wqe.inline_bytes) return PostResult::too_long_inline;
  std::copy(piece.begin(), piece.end(), wqe.inline_data() + wqe.inline_bytes);
  wqe.inline_bytes += static_cast<std::uint32_t>(piece.size());
  return PostResult::ok;
}

void QueuePair::abort_posting() {
  sq_.tail = sq_.doorbell;
  unlock_sends();
}

void QueuePair::ring_doorbell() {
  for (std::uint32_t at = sq_.doorbell; qp_.tracer != nullptr && at != sq_.tail; ++at)
    qp_.tracer->posted(*this, sq_.at(at));
  sq_.doorbell = sq_.tail;
  qp_.counters.doorbells.add(1);
  const Cpu cpu = current_cpu();
  remote_.tell_cpu(cpu);
  execute();
  sq_.prefetch_next();
  const bool gives_way = peer_waits_for(cpu);
  unlock_sends();
  if (gives_way) ::sched_yield();
}

}  // namespace weir::rnic
