#include "rnic/ethernet/receive_side_scaling.hpp"

namespace weir::rnic {

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
