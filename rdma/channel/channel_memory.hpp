// The registered blocks of one channel, and the two shapes in which an application holds them.
//
// A block is posted (the device receives into it), held (a Message views it, or will), sending (a Buffer of
// the user, or on its way), kept for reuse, or lent (the application may hold it for ever). Blocks are
// counted by use, in bytes. A block that was offered to the peer has a registration for reading through this
// channel's queue pair, as long as the longest message that was in it; it stays while the block is kept,
// because registering costs more than copying, and because nothing ever gets into such a block that is not
// meant for this very peer.
//
// Ownership: the connection holds the BlockStore and orphans it when it ends; the store lives on until the
// last Message or Buffer is gone, and what comes back to an orphan goes to the device's pool. Threading: the
// engine's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rdma/channel/channel_block.hpp"
#include "rdma/channel/shared_receives.hpp"
#include "rdma/channel_settings.hpp"
#include "rdma/device/device.hpp"
#include "rdma/device/memory_pool.hpp"

namespace weir::rdma {

class BlockStore;

// One holder's share of a block.
class BlockRef {
 public:
  BlockRef() = default;
  explicit BlockRef(ChannelBlock& block) : block_(&block) { ++block.holders; }
  BlockRef(BlockRef&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  BlockRef& operator=(BlockRef&& other) noexcept {
    if (this == &other) return *this;
    reset();
    block_ = std::exchange(other.block_, nullptr);
    return *this;
  }
  ~BlockRef() { reset(); }
  explicit operator bool() const { return block_ != nullptr; }
  ChannelBlock* operator->() const { return block_; }
  ChannelBlock& operator*() const { return *block_; }
  BlockRef share() const { return BlockRef(*block_); }
  void reset();

 private:
  ChannelBlock* block_ = nullptr;
};

class BlockStore {
 public:
  struct Orphan {
    void operator()(BlockStore* store) const { store->orphan(); }
  };
  using Ptr = std::unique_ptr<BlockStore, Orphan>;

  // `user` hears of each held block that comes back.
  // Frames come from `shared`, and go back there, if there is one.
  static Ptr make(Device& device, std::size_t frame_bytes, std::size_t keep_frames, std::size_t keep_large,
                  BlockUser& user, SharedReceives* shared) {
    return Ptr(new BlockStore(device, frame_bytes, keep_frames, keep_large, user, shared));
  }

  // Of the frame size, or of at least `bytes`. Errc::memory_limit at the pool's cap.
  Result<BlockRef> frame(BlockUse use);
  Result<BlockRef> large(std::size_t bytes, BlockUse use);
  // A frame that came into a shared receive.
  BlockRef adopt(std::unique_ptr<ChannelBlock> block, BlockUse use);
  void set_use(ChannelBlock& block, BlockUse use);
  // The peer's right to read the first `bytes`, which may still have to be bound.
  Result<PeerRight*> make_readable(ChannelBlock& block, std::size_t bytes);
  // Before the queue pair goes; blocks may still be held then.
  void revoke_rights();

  // Takes a held block with one holder out of what is bounded by `held_bytes`. False, and unchanged: the pool
  // is half full, and others need it.
  bool lend(ChannelBlock& block);
  bool has_plenty() const { return pool_.stats().used_bytes <= pool_.max_bytes() / 2; }

  const std::array<std::size_t, 5>& bytes_by_use() const { return bytes_; }
  std::size_t held_bytes() const { return bytes_[static_cast<std::size_t>(BlockUse::held)]; }
  void shrink();
  // Now and then: lets go of large blocks that nobody needed since the last time.
  void trim();
  // From now on what comes back goes to the device's pool.
  void keep_nothing() {
    keep_frames_ = keep_large_ = 0;
    shrink();
  }

 private:
  friend class BlockRef;
  using Kept = std::vector<std::unique_ptr<ChannelBlock>>;

  BlockStore(Device& device, std::size_t frame_bytes, std::size_t keep_frames, std::size_t keep_large,
             BlockUser& user, SharedReceives* shared)
      : device_(device.shared_from_this()),
        pool_(device.pool()),
        frame_bytes_(frame_bytes),
        keep_frames_(keep_frames),
        keep_large_(keep_large),
        user_(&user),
        shared_(shared) {}
  Result<BlockRef> fresh(std::size_t bytes, BlockUse use);
  void came_back(ChannelBlock& block);
  void revoke(ChannelBlock& block);
  void forget(Kept& kept, std::size_t count);
  void orphan();

  const std::shared_ptr<Device> device_;  // last to go
  MemoryPool& pool_;
  std::size_t frame_bytes_, keep_frames_, keep_large_;
  BlockUser* user_;         // null: orphaned
  SharedReceives* shared_;  // the device's
  Kept frames_, large_;
  std::vector<ChannelBlock*> readable_;  // wherever they are
  std::size_t least_large_ = 0;          // that large_ had since the last trim()
  std::size_t out_ = 0;                  // blocks with a holder
  std::array<std::size_t, 5> bytes_{};
};

// What was received: a view of registered memory, until it is let go.
class Message {
 public:
  Message() = default;
  Message(BlockRef block, std::span<const std::byte> bytes) : block_(std::move(block)), bytes_(bytes) {}
  Message(Message&& other) noexcept
      : block_(std::move(other.block_)), bytes_(std::exchange(other.bytes_, {})) {}
  Message& operator=(Message&& other) noexcept {
    block_ = std::move(other.block_);
    bytes_ = std::exchange(other.bytes_, {});
    return *this;
  }

  explicit operator bool() const { return static_cast<bool>(block_); }
  std::span<const std::byte> bytes() const { return bytes_; }
  const std::byte* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  // Makes it the application's for good: it no longer counts against `held_bytes`, so the sender does not
  // wait for it, and it may outlive the io_context. False: it may not, because the pool is half full or other
  // messages lie in the same block.
  bool keep() { return block_ && block_->store->lend(*block_); }
  // Lets go: the memory may be received into again.
  void reset() {
    bytes_ = {};
    block_.reset();
  }

 private:
  friend class ChannelConnection;
  BlockRef block_;
  std::span<const std::byte> bytes_;
};

// What will be sent: registered memory to be filled.
class Buffer {
 public:
  Buffer() = default;
  Buffer(BlockRef block, std::size_t offset, std::size_t bytes)
      : block_(std::move(block)), offset_(offset), bytes_(bytes) {}

  explicit operator bool() const { return static_cast<bool>(block_); }
  std::span<std::byte> bytes() const {
    return block_ ? block_->bytes().subspan(offset_, bytes_) : std::span<std::byte>();
  }
  std::size_t size() const { return bytes_; }
  // Less than was allocated is to be sent; at most size().
  void truncate(std::size_t bytes) { bytes_ = std::min(bytes_, bytes); }

 private:
  friend class ChannelConnection;
  BlockRef block_;
  std::size_t offset_ = 0;  // room before the message, for a record's header
  std::size_t bytes_ = 0;
};

}  // namespace weir::rdma
