// One registered block of a channel, and its users.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "rdma/device/memory_pool.hpp"
#include "rdma/device/peer_right.hpp"

namespace weir::rdma {

class BlockStore;

enum class BlockUse : std::uint8_t { posted, held, sending, kept, lent };

struct ChannelBlock {
  MemoryPool::Block block;
  std::uint32_t lkey = 0;
  std::uint32_t holders = 0;
  BlockUse use = BlockUse::kept;
  PeerRight readable;  // by the peer, as far as it was once offered
  std::size_t readable_bytes = 0;
  BlockStore* store = nullptr;

  static Result<std::unique_ptr<ChannelBlock>> make(MemoryPool& pool, std::size_t bytes);
  std::span<std::byte> bytes() const { return block.bytes(); }
};

// The channel that uses the blocks.
class BlockUser {
 public:
  // A held block was released.
  virtual void on_let_go() = 0;
  // Something arrived in a shared receive.
  virtual void on_shared_receive(const ibv_wc& completion, std::unique_ptr<ChannelBlock> block) = 0;

 protected:
  ~BlockUser() = default;
};

}  // namespace weir::rdma
