#include "rdma/channel/channel_block.hpp"

#include <utility>

namespace weir::rdma {

Result<std::unique_ptr<ChannelBlock>> ChannelBlock::make(MemoryPool& pool, std::size_t bytes) {
  auto made = std::make_unique<ChannelBlock>();
  Result<MemoryPool::Block> block = pool.take(bytes);
  if (!block) return std::unexpected(block.error());
  made->block = std::move(*block);
  Result<std::uint32_t> lkey = made->block.lkey();
  if (!lkey) return std::unexpected(lkey.error());
  made->lkey = *lkey;
  return made;
}

}  // namespace weir::rdma
