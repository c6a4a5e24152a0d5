#include "rnic/queue_pair/receive_rings.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

#include "rnic/ethernet/receive_side_scaling.hpp"

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

std::size_t completion_bytes(QpType type) {
  if (type == QpType::rss) return sizeof(IndirectionEntry);
  return is_datagram(type) ? sizeof(DatagramSlot) : sizeof(ReceiveCqe);
}

}  // namespace

bool ReceiveRings::allocate(const QpConfig& config, std::uint32_t srq_wrs) {
  if (config.type == QpType::xrc_recv) openers_offset_ = segment_.allocate(sizeof(QpOpeners));
  if (config.is_xrc()) return config.type == QpType::xrc_send || openers_offset_ != 0;
  if (config.type == QpType::rss) return allocate_indirection(config.rss);
  std::uint32_t completions = std::min(std::bit_ceil(srq_wrs), srq_cqe_ring);
  if (config.has_own_receive_queue()) {
    const std::uint32_t entries = std::bit_ceil(std::max(config.caps.max_recv_wr, 1u));
    rq_stride_ = wqe_stride(config.caps.max_recv_sge);
    rq_mask_ = entries - 1;
    rq_offset_ = segment_.allocate(std::size_t{rq_stride_} * entries);
    if (rq_offset_ == 0) return false;
    completions = entries;
  }
  cqe_mask_ = completions - 1;
  cqe_offset_ = segment_.allocate(completion_bytes(config.type) * completions);
  if (is_datagram(config.type)) return cqe_offset_ != 0;
  landing_offset_ = segment_.allocate(landing_ring_bytes);
  if (landing_offset_ != 0) landing_mask_ = landing_ring_bytes - 1;
  return cqe_offset_ != 0 && landing_offset_ != 0;
}

// The hash and the table take the places of the receive ring and the completion ring.
bool ReceiveRings::allocate_indirection(const RssConfig& rss) {
  assert(std::has_single_bit(rss.queues.size()) && rss.queues.size() <= max_indirection_entries);
  rq_stride_ = sizeof(RxHash);
  cqe_mask_ = static_cast<std::uint32_t>(rss.queues.size()) - 1;
  rq_offset_ = segment_.allocate(sizeof(RxHash));
  cqe_offset_ = segment_.allocate(sizeof(IndirectionEntry) * rss.queues.size());
  if (rq_offset_ == 0 || cqe_offset_ == 0) return false;
  *segment_.at<RxHash>(rq_offset_) = rss.hash;
  auto* table = segment_.at<IndirectionEntry>(cqe_offset_);
  for (std::size_t i = 0; i < rss.queues.size(); ++i)
    table[i].store(rss.queues[i], std::memory_order_relaxed);
  return true;
}

void ReceiveRings::free(QpType type) {
  if (rq_offset_) segment_.free(rq_offset_, std::size_t{rq_stride_} * (rq_mask_ + 1));
  if (cqe_offset_) segment_.free(cqe_offset_, completion_bytes(type) * (cqe_mask_ + 1));
  if (landing_offset_) segment_.free(landing_offset_, landing_ring_bytes);
  if (openers_offset_) segment_.free(openers_offset_, sizeof(QpOpeners));
  rq_offset_ = cqe_offset_ = landing_offset_ = openers_offset_ = 0;
  rq_mask_ = rq_stride_ = cqe_mask_ = landing_mask_ = 0;
}

void ReceiveRings::show(QpContext& ctx) const {
  ctx.rq_mask = rq_mask_;
  ctx.rq_stride = rq_stride_;
  ctx.cqe_mask = cqe_mask_;
  ctx.landing_mask = landing_mask_;
  ctx.rq_offset = rq_offset_;
  ctx.cqe_offset = cqe_offset_;
  ctx.landing_offset = landing_offset_;
  ctx.openers_offset = openers_offset_;
}

}  // namespace weir::rnic
