// Registered memory in blocks of powers of two, cut from slabs.
//
// A slab holds blocks of one size. It is a memfd mapped MAP_SHARED: on a NIC that executes in software this
// lets the peer's process be written directly, with no system call; on real hardware it is ordinary memory.
// Pages are touched only when used, so on a software NIC a pool costs what was used of it; real hardware pins
// a slab when its first lkey is asked for.
//
// A slab's own registration is local only. A block that a peer may write has a PeerRight over Block::bytes(),
// so that an rkey opens one connection's block, to that connection, and dies with it. Such a block comes from
// take_zeroed(): only the peer knows which bytes it wrote, so whatever else lies in the block counts as the
// peer's, and must be nobody's.
//
// Limits: `max_bytes` of slabs is a hard cap (Errc::memory_limit). What was free all the time between two
// trims, beyond `keep_bytes`, the water-mark, is returned to the system in slabs whose blocks are all free: a
// slab that was needed meanwhile will be again, and mapping it anew costs a page fault for every 4 KiB.
//
// Ownership: the pool outlives its blocks. Threading: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "rdma/error.hpp"
#include "rdma/verbs/objects.hpp"

namespace weir::rdma {

struct MemoryPoolOptions {
  std::size_t slab_bytes = std::size_t{4} << 20;  // or one block, where a block is larger
  std::size_t max_bytes = std::size_t{8} << 30;
  std::size_t keep_bytes = std::size_t{64} << 20;
};

struct MemoryPoolStats {
  std::size_t slab_bytes = 0;  // mapped now
  std::size_t used_bytes = 0;  // in blocks that are held
  std::size_t slabs = 0;
  std::size_t blocks = 0;            // held
  std::uint64_t slabs_returned = 0;  // returned to the system since the start
  std::uint64_t refused = 0;         // take() that met the cap
};

class MemoryPool {
 public:
  class Block;
  static constexpr std::size_t min_block_bytes = 4096;

  // `pd` outlives the pool.
  MemoryPool(const ProtectionDomain& pd, MemoryPoolOptions options);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // A block of at least `bytes`, rounded up to a power of two. Its contents are unspecified: they may be left
  // over from another connection.
  Result<Block> take(std::size_t bytes);
  // The same, with zeros in the first `bytes`. Costs nothing for pages that were never used, and does not
  // touch them; a used page costs its memset (about 40 us for 1 MiB). The previous holder must have
  // deregistered the block that its peer could write, or that peer still writes into it.
  Result<Block> take_zeroed(std::size_t bytes);
  // Call it now and then; the caller keeps the time.
  void trim();
  // Returns slabs whose blocks are all free, as long as more than `keep` bytes are free.
  void return_idle(std::size_t keep);
  const MemoryPoolStats& stats() const { return stats_; }
  std::size_t max_bytes() const { return options_.max_bytes; }

 private:
  struct Slab;
  // The slabs of one block size, oldest first.
  using SlabList = std::vector<std::unique_ptr<Slab>>;

  Result<Slab*> slab_with_room(std::size_t block_bytes);
  Result<std::unique_ptr<Slab>> map_slab(std::size_t block_bytes);
  static void zero(const Block& block, std::size_t bytes);
  void give_back(Slab& slab, std::uint32_t index);
  std::size_t free_bytes() const { return stats_.slab_bytes - stats_.used_bytes; }

  const ProtectionDomain& pd_;
  MemoryPoolOptions options_;
  MemoryPoolStats stats_;
  std::map<std::size_t, SlabList> slabs_;
  std::size_t least_free_bytes_ = 0;  // since the last trim
};

// A piece of the pool with one owner; returned when destroyed.
class MemoryPool::Block {
 public:
  Block() = default;
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  ~Block();

  explicit operator bool() const { return slab_ != nullptr; }
  std::span<std::byte> bytes() const { return bytes_; }
  // The key for local use by the device; registers the slab on its first call.
  Result<std::uint32_t> lkey();

 private:
  friend class MemoryPool;
  MemoryPool* pool_ = nullptr;
  Slab* slab_ = nullptr;
  std::uint32_t index_ = 0;
  bool was_used_ = false;  // by a holder before this one
  std::span<std::byte> bytes_;
};

}  // namespace weir::rdma
