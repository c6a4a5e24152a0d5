// XRC queue pairs that several processes have open (ibv_open_qp(3)): one lives while anybody has it open.
//
// Its context stays in the segment of the process that made it, its home. Whoever opens it has a QueuePair of
// its own over that context; an xrc_recv queue pair has neither rings nor CQs, so there is nothing else to
// share. The home keeps one of which it has no handle any more, until the last process that has it open
// closes it, or ends.
//
// When the home ends, its segment remains with those who have mapped it: to the initiator that is connected
// the queue pair is there while some process that it can reach has it open (requester.cpp). Nobody else can
// find it then.
//
// Ordering: who opens it notes that in the home's segment and then looks whether it may; the home that is
// about to destroy it says so and then looks who noted. Both are seq_cst, so one of them sees the other.
#include <algorithm>
#include <mutex>
#include <utility>

#include "rnic/adapter.hpp"
#include "rnic/datagrams/datagram_packets.hpp"

namespace weir::rnic {
namespace {

QpConfig xrc_recv_config(std::uint64_t xrcd) {
  QpConfig config;
  config.type = QpType::xrc_recv;
  config.xrcd = xrcd;
  return config;
}

}  // namespace

QueuePair::QueuePair(Adapter& nic, PeerPtr home, Qpn number, std::uint64_t xrcd)
    : nic_(nic),
      home_(std::move(home)),
      qp_{.nic = nic.parts(),
          .whole = *this,
          .qpn = number,
          .config = xrc_recv_config(xrcd),
          .ctx = nullptr,
          .counters = home_->segment().qp_counters[number.index()],
          .tracer = nic.tracer()},
      receive_side_(qp_),
      sq_(0, 0, 0) {
  QpContext& context = home_->segment().qps[number.index()];
  const std::uint64_t offset = context.openers_offset;
  openers_ = openers_of(context, home_->segment_base(), home_->segment_size());
  if (openers_ == nullptr || context.xrcd.load(std::memory_order_seq_cst) != xrcd) return;
  qp_.ctx = &context;
  openers_->nic[nic.slot()].store(opener_number(nic.segment().header()), std::memory_order_seq_cst);
  const bool open = context.xrcd.load(std::memory_order_seq_cst) == xrcd && context.openers_offset == offset;
  note_initiator();
  if (open) return;
  close_opened();
  qp_.ctx = nullptr;
}

void QueuePair::close_opened() {
  openers_->nic[nic_.slot()].store(0, std::memory_order_seq_cst);
  home_->report_closed(qp_.qpn);
}

bool QueuePair::stays_open() {
  if (openers_ == nullptr) return false;
  if (has_opener(*openers_)) return true;
  qp_.ctx->xrcd.store(0, std::memory_order_seq_cst);
  if (!has_opener(*openers_)) return false;
  qp_.ctx->xrcd.store(qp_.config.xrcd, std::memory_order_seq_cst);
  return true;
}

void QueuePair::forget_opener(Slot dead) {
  if (openers_ != nullptr && !home_) openers_->nic[dead % max_slots].store(0, std::memory_order_seq_cst);
}

void QueuePair::tell_openers_of_fault(Fault fault) {
  if (openers_ == nullptr || home_) return;
  for (std::uint32_t slot = 0; slot < max_slots; ++slot) {
    if (openers_->nic[slot].load(std::memory_order_relaxed) == 0) continue;
    if (const PeerPtr opener = nic_.host().peer(static_cast<Slot>(slot), HostPort::Wait::no))
      opener->report_fault(qp_.qpn, fault);
  }
}

QpAttributes QueuePair::shared_attributes() const {
  const std::uint32_t rights = qp_.ctx->access.load(std::memory_order_relaxed);
  QpAttributes attributes;
  attributes.access = rights & ~access::responder_depth;
  attributes.destination = Qpn(qp_.ctx->remote_qpn.load(std::memory_order_acquire));
  attributes.min_rnr_timer =
      static_cast<std::uint8_t>(qp_.ctx->min_rnr_timer.load(std::memory_order_relaxed));
  attributes.max_dest_rd_atomic = rights & access::responder_depth ? 1 : 0;
  return attributes;
}

void QueuePair::initiator_gone(Slot slot) {
  if (home_->alive()) return;
  note_initiator();
  peer_gone(slot);
}

// Another process may have connected it.
void QueuePair::note_initiator() {
  if (qp_.config.type != QpType::xrc_recv) return;
  const Qpn initiator(qp_.ctx->remote_qpn.load(std::memory_order_acquire));
  if (initiator.value() != 0) initiator_slot_.store(initiator.slot(), std::memory_order_relaxed);
}

// ---- the NIC's part

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

// Of one whose home has ended its initiator's end is nobody else's business.
void Adapter::tell_opened_of_end(Slot slot) {
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
