#include "rnic/queue_pair/xrc_openers.hpp"

namespace weir::rnic {

QpContext* XrcOpeners::open(Qpn number, std::uint64_t xrcd) {
  QpContext& context = home_->segment().qps[number.index()];
  const std::uint64_t offset = context.openers_offset;
  list_ = openers_of(context, home_->segment_base(), home_->segment_size());
  if (list_ == nullptr || context.xrcd.load(std::memory_order_seq_cst) != xrcd) return nullptr;
  list_->nic[qp_.nic.slot].store(opener_number(qp_.nic.segment.header()), std::memory_order_seq_cst);
  if (context.xrcd.load(std::memory_order_seq_cst) == xrcd && context.openers_offset == offset)
    return &context;
  close();
  return nullptr;
}

void XrcOpeners::close() {
  list_->nic[qp_.nic.slot].store(0, std::memory_order_seq_cst);
  home_->report_closed(qp_.qpn);
}

bool XrcOpeners::stays_open() const {
  if (list_ == nullptr) return false;
  if (has_opener(*list_)) return true;
  qp_.ctx->xrcd.store(0, std::memory_order_seq_cst);
  if (!has_opener(*list_)) return false;
  qp_.ctx->xrcd.store(qp_.config.xrcd, std::memory_order_seq_cst);
  return true;
}

void XrcOpeners::forget(Slot dead) const {
  if (list_ != nullptr && !home_) list_->nic[dead % max_slots].store(0, std::memory_order_seq_cst);
}

void XrcOpeners::report_fault(Fault fault) const {
  if (list_ == nullptr || home_) return;
  for (std::uint32_t slot = 0; slot < max_slots; ++slot) {
    if (list_->nic[slot].load(std::memory_order_relaxed) == 0) continue;
    if (const PeerPtr opener = qp_.nic.host.peer(static_cast<Slot>(slot), HostPort::Wait::no))
      opener->report_fault(qp_.qpn, fault);
  }
}

}  // namespace weir::rnic
