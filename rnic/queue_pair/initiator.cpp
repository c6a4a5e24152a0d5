#include "rnic/queue_pair/initiator.hpp"

#include <sched.h>

#include "rnic/memory/spin_lock.hpp"

namespace weir::rnic {
namespace {

constexpr std::uint64_t longest_delivery_ns = 100'000'000;  // one datagram
constexpr int spins = 100;

}  // namespace

void Initiator::note() {
  if (qp_.config.type != QpType::xrc_recv) return;
  const std::uint32_t remote = qp_.ctx->remote_qpn.load(std::memory_order_acquire);
  const Qpn initiator = (remote & over_packets) != 0 ? qp_.qpn : Qpn(remote);  // its own process executes
  if (initiator.value() != 0) set_slot(initiator.slot());
}

bool Initiator::wait(std::uint64_t longest_ns) const {
  if (has_many_senders(qp_.config.type)) return wait_for_datagram_senders();
  const std::uint32_t seen = hazard();
  if ((seen & 1) == 0) return true;
  const std::uint64_t give_up_ns = qp_.nic.host.now_ns() + longest_ns;
  for (int tries = 0; hazard() == seen; ++tries) {
    if (tries < spins) {
      cpu_relax();
      continue;
    }
    // A killed initiator leaves its hazard odd for ever; it will not write again.
    if (!lives()) return true;
    if (qp_.nic.host.now_ns() >= give_up_ns) return false;
    sched_yield();
  }
  return true;
}

bool Initiator::wait_for_datagram_senders() const {
  const std::uint64_t give_up_ns = qp_.nic.host.now_ns() + longest_delivery_ns;
  while (qp_.ctx->datagram_senders.load(std::memory_order_seq_cst) != 0) {
    // A sender that was killed inside never leaves.
    if (qp_.nic.host.now_ns() >= give_up_ns) return false;
    sched_yield();
  }
  return true;
}

bool Initiator::leaves_at_once() const {
  const std::uint32_t seen = hazard();
  if ((seen & 1) == 0) return true;
  for (int tries = 0; tries < spins; ++tries, cpu_relax())
    if (hazard() != seen) return true;
  return !lives();
}

bool Initiator::still_inside(std::uint32_t at) const { return hazard() == at && lives(); }

void Initiator::end_operation() {
  const std::uint32_t at = qp_.ctx->hazard.load(std::memory_order_acquire);
  if (at & 1) qp_.ctx->hazard.store(at + 1, std::memory_order_seq_cst);
}

}  // namespace weir::rnic
