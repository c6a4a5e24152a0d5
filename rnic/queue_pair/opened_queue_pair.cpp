// The NIC's part in XRC queue pairs that several processes have open (xrc_openers.hpp).
#include <algorithm>
#include <mutex>
#include <utility>

#include "rnic/adapter.hpp"

namespace weir::rnic {

QueuePair* Adapter::open_qp(Qpn number, std::uint64_t xrcd) {
  if (number.slot() == slot_) {
    const std::lock_guard lock(mutex_);
    const auto kept = std::ranges::find_if(
        kept_, [&](const QueuePair* qp) { return qp->qpn() == number && qp->config().xrcd == xrcd; });
    if (kept == kept_.end()) return nullptr;
    QueuePair* const qp = *kept;
    kept_.erase(kept);
    return qp;
  }
  PeerPtr home = host_.peer(number.slot(), HostPort::Wait::yes);
  if (!home) return nullptr;
  auto qp = std::make_unique<QueuePair>(*this, std::move(home), number, xrcd);
  if (!qp->valid()) return nullptr;
  const std::lock_guard lock(mutex_);
  return opened_.emplace_back(std::move(qp)).get();
}

void Adapter::close_opened(QueuePair* qp) {
  const std::lock_guard lock(mutex_);
  std::erase_if(opened_, [qp](const auto& one) { return one.get() == qp; });
}

// If the owning process is gone, only we handle the initiator's death.
void Adapter::notify_openers_of_end(Slot slot) {
  const std::lock_guard lock(mutex_);
  for (const auto& qp : opened_) qp->initiator_gone(slot);
}

void Adapter::queue_pair_closed() {
  const std::lock_guard lock(mutex_);
  for (QueuePair* const qp : std::exchange(kept_, {})) {
    if (qp->stays_open()) {
      kept_.push_back(qp);
      continue;
    }
    qp->shut();
    destroy_locked(qp);
  }
}

}  // namespace weir::rnic
