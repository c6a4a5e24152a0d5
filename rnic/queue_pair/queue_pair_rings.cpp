// A queue pair's rings in the shared segment: made with it, freed with it.
//
// Initiators find them by the context. Their owner goes by a copy of its own (QueuePair::Rings), so that
// nonsense that a neighbour writes into the context leads it nowhere.
#include <algorithm>
#include <bit>

#include "rnic/adapter.hpp"
#include "rnic/queue_pair/queue_pair.hpp"

namespace weir::rnic {
namespace {

// Small SENDs into private memory pass through here; pages appear as they are touched.
constexpr std::uint32_t landing_ring_bytes = 64 * 1024;
// With an SRQ, how many completions of one queue pair may wait to be polled before its sender sees RNR.
constexpr std::uint32_t srq_cqe_ring = 512;

std::uint32_t wqe_stride(std::uint32_t sges) {
  return static_cast<std::uint32_t>((sizeof(ReceiveWqe) + sizeof(Sge) * (sges > 1 ? sges - 1 : 0) + 15) / 16 *
                                    16);
}

}  // namespace

bool QueuePair::allocate_rings() {
  Segment& segment = nic_.segment();
  const std::uint32_t entries = std::bit_ceil(std::max(config_.caps.max_recv_wr, 1u));
  rings_.openers_offset = config_.type == QpType::xrc_recv ? segment.allocate(sizeof(QpOpeners)) : 0;
  if (rings_.openers_offset != 0) openers_ = segment.at<QpOpeners>(rings_.openers_offset);
  if (is_xrc()) return config_.type == QpType::xrc_send || openers_ != nullptr;
  if (config_.type == QpType::rss) return allocate_indirection();
  if (has_own_rq()) {
    rings_.rq_stride = wqe_stride(config_.caps.max_recv_sge);
    rings_.rq_mask = entries - 1;
    posted_.resize(entries);
    rings_.rq_offset = segment.allocate(std::size_t{rings_.rq_stride} * entries);
    if (rings_.rq_offset == 0) return false;
  }
  const std::uint32_t cqes =
      has_own_rq() ? entries : std::min(std::bit_ceil(config_.srq->max_wrs()), srq_cqe_ring);
  rings_.cqe_mask = cqes - 1;
  if (is_datagram(config_.type)) {
    rings_.cqe_offset = segment.allocate(sizeof(DatagramSlot) * cqes);
    return rings_.cqe_offset != 0;
  }
  rings_.cqe_offset = segment.allocate(sizeof(ReceiveCqe) * cqes);
  rings_.landing_offset = segment.allocate(landing_ring_bytes);
  if (rings_.landing_offset != 0) rings_.landing_mask = landing_ring_bytes - 1;
  return rings_.cqe_offset != 0 && rings_.landing_offset != 0;
}

void QueuePair::free_rings() {
  Segment& segment = nic_.segment();
  const std::size_t cqe_bytes = config_.type == QpType::rss ? sizeof(IndirectionEntry)
                                : is_datagram(config_.type) ? sizeof(DatagramSlot)
                                                            : sizeof(ReceiveCqe);
  if (rings_.rq_offset) segment.free(rings_.rq_offset, std::size_t{rings_.rq_stride} * (rings_.rq_mask + 1));
  if (rings_.cqe_offset) segment.free(rings_.cqe_offset, cqe_bytes * (rings_.cqe_mask + 1));
  if (rings_.landing_offset) segment.free(rings_.landing_offset, landing_ring_bytes);
  if (rings_.openers_offset) segment.free(rings_.openers_offset, sizeof(QpOpeners));
  rings_ = {};
  show_rings();
}

void QueuePair::show_rings() const {
  ctx_->rq_mask = rings_.rq_mask;
  ctx_->rq_stride = rings_.rq_stride;
  ctx_->cqe_mask = rings_.cqe_mask;
  ctx_->landing_mask = rings_.landing_mask;
  ctx_->rq_offset = rings_.rq_offset;
  ctx_->cqe_offset = rings_.cqe_offset;
  ctx_->landing_offset = rings_.landing_offset;
  ctx_->openers_offset = rings_.openers_offset;
}

ReceiveWqe& QueuePair::rq_at(std::uint32_t count) const {
  return *nic_.segment().at<ReceiveWqe>(rings_.rq_offset +
                                        std::uint64_t{rings_.rq_stride} * (count & rings_.rq_mask));
}

}  // namespace weir::rnic
