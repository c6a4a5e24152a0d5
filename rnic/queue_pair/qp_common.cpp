#include "rnic/queue_pair/qp_common.hpp"

namespace weir::rnic {

void QpCommon::raise(const CqPlace& at, Solicited solicited) const {
  mark_ready(*at.cq, at.line);
  if (!take_armed(*at.cq, solicited)) return;
  counters.own_wakeups.shared_add(1);
  if (const std::uint32_t channel = at.cq->channel.load(std::memory_order_relaxed); channel != 0)
    nic.host.raise_channel(channel);
}

void QpCommon::kick_initiator_if_parked() const {
  if (ctx->initiator_parked.load(std::memory_order_seq_cst) == 0) return;
  if (ctx->initiator_parked.exchange(0, std::memory_order_seq_cst) == 0) return;
  const Qpn initiator(ctx->remote_qpn.load(std::memory_order_acquire));
  if (const PeerPtr peer = nic.host.peer(initiator.slot(), HostPort::Wait::no)) peer->kick(initiator);
}

}  // namespace weir::rnic
