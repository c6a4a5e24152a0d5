#include "rnic/ethernet/receive_side_scaling.hpp"

#include <bit>
#include <cassert>

#include "rnic/adapter.hpp"
#include "rnic/queue_pair/queue_pair.hpp"

namespace weir::rnic {

bool QueuePair::allocate_indirection() {
  Segment& segment = nic_.segment();
  const std::vector<std::uint32_t>& queues = config_.rss.queues;
  assert(std::has_single_bit(queues.size()) && queues.size() <= max_indirection_entries);
  ctx_->recv_cq = ctx_->cq_line = 0;  // nothing completes here
  rings_.rq_stride = sizeof(RxHash);
  rings_.rq_mask = 0;
  rings_.cqe_mask = static_cast<std::uint32_t>(queues.size()) - 1;
  rings_.rq_offset = segment.allocate(sizeof(RxHash));
  rings_.cqe_offset = segment.allocate(sizeof(IndirectionEntry) * queues.size());
  if (rings_.rq_offset == 0 || rings_.cqe_offset == 0) return false;
  *segment.at<RxHash>(rings_.rq_offset) = config_.rss.hash;
  auto* table = segment.at<IndirectionEntry>(rings_.cqe_offset);
  for (std::size_t i = 0; i < queues.size(); ++i) table[i].store(queues[i], std::memory_order_relaxed);
  return true;
}

std::optional<std::uint32_t> scaled_queue(Peer& peer, const QpContext& rss, const FrameKey& frame) {
  const std::uint32_t mask = rss.cqe_mask;
  const auto* hash = at_offset<RxHash>(peer.segment_base(), peer.segment_size(), rss.rq_offset, 1);
  const auto* table = at_offset<IndirectionEntry>(peer.segment_base(), peer.segment_size(), rss.cqe_offset,
                                                  std::uint64_t{mask} + 1);
  if (hash == nullptr || table == nullptr) return std::nullopt;
  const std::uint32_t entry = rx_hash(*hash, frame).value_or(0) & mask;
  const std::uint32_t queue = table[entry].load(std::memory_order_relaxed);
  if (queue >= max_qps) return std::nullopt;
  return queue;
}

}  // namespace weir::rnic
