#include "rdma/channel/channel_memory.hpp"

#include <algorithm>

namespace weir::rdma {

void BlockRef::reset() {
  if (ChannelBlock* block = std::exchange(block_, nullptr); block != nullptr && --block->holders == 0)
    block->store->came_back(*block);
}

BlockRef BlockStore::adopt(std::unique_ptr<ChannelBlock> block, BlockUse use) {
  block->store = this;
  block->use = use;
  bytes_[static_cast<std::size_t>(use)] += block->bytes().size();
  ++out_;
  return BlockRef(*block.release());
}

Result<BlockRef> BlockStore::frame(BlockUse use) {
  if (shared_ != nullptr)
    if (std::unique_ptr<ChannelBlock> spare = shared_->take_spare()) return adopt(std::move(spare), use);
  if (frames_.empty()) return fresh(frame_bytes_, use);
  ChannelBlock* block = frames_.back().release();
  frames_.pop_back();
  ++out_;
  set_use(*block, use);
  return BlockRef(*block);
}

Result<BlockRef> BlockStore::large(std::size_t bytes, BlockUse use) {
  if (bytes <= frame_bytes_) return frame(use);
  // Take the one returned last, which may still be in the cache, unless it is far too large.
  const auto found = std::find_if(large_.rbegin(), large_.rend(), [bytes](const auto& each) {
    return each->bytes().size() >= bytes &&
           each->bytes().size() / 2 < std::max(bytes, MemoryPool::min_block_bytes);
  });
  if (found == large_.rend()) return fresh(bytes, use);
  ChannelBlock* block = found->release();
  large_.erase(std::next(found).base());
  least_large_ = std::min(least_large_, large_.size());
  ++out_;
  set_use(*block, use);
  return BlockRef(*block);
}

Result<BlockRef> BlockStore::fresh(std::size_t bytes, BlockUse use) {
  Result<std::unique_ptr<ChannelBlock>> made = ChannelBlock::make(pool_, bytes);
  if (!made) return std::unexpected(made.error());
  return adopt(std::move(*made), use);
}

bool BlockStore::lend(ChannelBlock& block) {
  if (block.use != BlockUse::held || block.holders != 1 || !has_plenty()) return false;
  set_use(block, BlockUse::lent);
  if (user_ != nullptr) user_->on_let_go();
  return true;
}

void BlockStore::set_use(ChannelBlock& block, BlockUse use) {
  bytes_[static_cast<std::size_t>(block.use)] -= block.bytes().size();
  bytes_[static_cast<std::size_t>(use)] += block.bytes().size();
  block.use = use;
}

Result<PeerRight*> BlockStore::make_readable(ChannelBlock& block, std::size_t bytes) {
  if (!block.readable || block.readable_bytes < bytes) {
    revoke(block);
    Result<PeerRight> right = PeerRight::make(*device_, block.bytes().first(bytes), Access::remote_read);
    if (!right) return std::unexpected(right.error());
    block.readable = std::move(*right);
    block.readable_bytes = bytes;
    readable_.push_back(&block);
  }
  return &block.readable;
}

void BlockStore::revoke(ChannelBlock& block) {
  if (!block.readable) return;
  block.readable = {};
  block.readable_bytes = 0;
  std::erase(readable_, &block);
}

void BlockStore::revoke_rights() {
  for (ChannelBlock* block : std::exchange(readable_, {})) {
    block->readable = {};
    block->readable_bytes = 0;
  }
}

void BlockStore::came_back(ChannelBlock& block) {
  const bool was_held = block.use == BlockUse::held;
  std::unique_ptr<ChannelBlock> owned(&block);
  --out_;
  const bool is_frame = block.bytes().size() == std::max(frame_bytes_, MemoryPool::min_block_bytes);
  Kept& kept = is_frame ? frames_ : large_;
  // A large block costs a registration and its page faults. So we keep as many as were needed lately, as
  // long as the pool has plenty.
  const bool keep = is_frame ? kept.size() < keep_frames_
                             : kept.size() < keep_large_ ||
                                   (keep_large_ > 0 && pool_.stats().used_bytes < pool_.max_bytes() / 2);
  if (is_frame && shared_ != nullptr) {
    bytes_[static_cast<std::size_t>(block.use)] -= block.bytes().size();
    revoke(block);  // the next message in it may come from another peer
    shared_->give_back(std::move(owned));
  } else if (user_ != nullptr && keep) {
    set_use(block, BlockUse::kept);
    kept.push_back(std::move(owned));
  } else {
    bytes_[static_cast<std::size_t>(block.use)] -= block.bytes().size();
    revoke(block);
    owned.reset();
  }
  if (user_ != nullptr) {
    if (was_held) user_->on_let_go();
  } else if (out_ == 0) {
    delete this;
  }
}

void BlockStore::trim() {
  const std::size_t unneeded = least_large_ > keep_large_ ? least_large_ - keep_large_ : 0;
  forget(large_, unneeded);
  least_large_ = large_.size();
}

// The oldest `count`.
void BlockStore::forget(Kept& kept, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    bytes_[static_cast<std::size_t>(BlockUse::kept)] -= kept[i]->bytes().size();
    revoke(*kept[i]);
  }
  kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(count));
}

void BlockStore::shrink() {
  for (Kept* kept : {&frames_, &large_}) forget(*kept, kept->size());
  least_large_ = 0;
}

void BlockStore::orphan() {
  user_ = nullptr;
  shrink();
  if (out_ == 0) delete this;
}

}  // namespace weir::rdma
