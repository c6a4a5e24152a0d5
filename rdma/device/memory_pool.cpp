#include "rdma/device/memory_pool.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace weir::rdma {
namespace {

struct SharedMemory {
  int fd = -1;
  std::span<std::byte> bytes;
};

// Shared, anonymous memory of sealed size, so that a peer that maps it cannot shrink it under us. The
// descriptor stays open: a software NIC finds the file through it and shows it to the peer's process.
Result<SharedMemory> map_shared(std::size_t bytes) {
  const int fd = memfd_create("weir-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return fail_os(Errc::memory_limit, "cannot create shared memory for the pool", errno);
  void* at = MAP_FAILED;
  if (ftruncate(fd, static_cast<off_t>(bytes)) == 0 &&
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
    at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at != MAP_FAILED) return SharedMemory{fd, std::span(static_cast<std::byte*>(at), bytes)};
  const int why = errno;
  close(fd);
  return fail_os(Errc::memory_limit, "cannot map " + std::to_string(bytes) + " bytes for the pool", why);
}

}  // namespace

struct MemoryPool::Slab {
  int fd;
  std::span<std::byte> memory;
  std::size_t block_bytes;
  // Indices of free blocks. The last one freed is taken next, because it may still be in the cache.
  std::vector<std::uint32_t> free;
  // For each block: whether it was used since the slab was mapped and may
  // therefore hold old data.
  std::vector<bool> used;
  std::optional<MemoryRegion> region;

  Slab(const SharedMemory& mapped, std::size_t each)
      : fd(mapped.fd), memory(mapped.bytes), block_bytes(each) {
    const auto count = static_cast<std::uint32_t>(memory.size() / each);
    free.reserve(count);
    used.resize(count);
    for (std::uint32_t i = count; i > 0; --i) free.push_back(i - 1);
  }
  ~Slab() {
    region.reset();
    munmap(memory.data(), memory.size());
    close(fd);
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  bool idle() const { return free.size() == memory.size() / block_bytes; }
};

MemoryPool::MemoryPool(const ProtectionDomain& pd, MemoryPoolOptions options) : pd_(pd), options_(options) {}

MemoryPool::~MemoryPool() { assert(stats_.blocks == 0 && "a block outlives its pool"); }

Result<MemoryPool::Block> MemoryPool::take(std::size_t bytes) {
  if (bytes > options_.max_bytes) {
    ++stats_.refused;
    return fail(Errc::memory_limit, "a block of " + std::to_string(bytes) +
                                        " bytes exceeds the pool's cap of " +
                                        std::to_string(options_.max_bytes));
  }
  const std::size_t block_bytes = std::bit_ceil(std::max(bytes, min_block_bytes));
  Result<Slab*> slab = slab_with_room(block_bytes);
  if (!slab) return std::unexpected(slab.error());

  Block block;
  block.pool_ = this;
  block.slab_ = *slab;
  block.index_ = (*slab)->free.back();
  block.bytes_ = (*slab)->memory.subspan(block.index_ * block_bytes, block_bytes);
  (*slab)->free.pop_back();
  block.was_used_ = (*slab)->used[block.index_];
  (*slab)->used[block.index_] = true;
  stats_.used_bytes += block_bytes;
  ++stats_.blocks;
  least_free_bytes_ = std::min(least_free_bytes_, free_bytes());
  return block;
}

Result<MemoryPool::Block> MemoryPool::take_zeroed(std::size_t bytes) {
  Result<Block> block = take(bytes);
  if (block && block->was_used_) zero(*block, bytes);
  return block;
}

// Follows the file's pages: a page that was never touched is a hole and stays one.
void MemoryPool::zero(const Block& block, std::size_t bytes) {
  const Slab& slab = *block.slab_;
  const off_t begin = block.bytes_.data() - slab.memory.data();
  const off_t end = begin + static_cast<off_t>(bytes);
  for (off_t at = begin; at < end;) {
    const off_t data = lseek(slab.fd, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) return;   // only a hole up to the end of the file
    const off_t from = data < 0 ? at : data;  // if the system cannot tell, treat all as data
    const off_t hole = data < 0 ? -1 : lseek(slab.fd, from, SEEK_HOLE);
    const off_t to = hole < 0 ? end : std::min(hole, end);
    if (from < to) std::memset(slab.memory.data() + from, 0, static_cast<std::size_t>(to - from));
    at = std::max(from, to);
  }
}

Result<MemoryPool::Slab*> MemoryPool::slab_with_room(std::size_t block_bytes) {
  SlabList& list = slabs_[block_bytes];
  for (const auto& slab : list)  // oldest slab first, so that the youngest become idle and can be returned
    if (!slab->free.empty()) return slab.get();
  Result<std::unique_ptr<Slab>> fresh = map_slab(block_bytes);
  if (!fresh) return std::unexpected(fresh.error());
  list.push_back(std::move(*fresh));
  return list.back().get();
}

Result<std::unique_ptr<MemoryPool::Slab>> MemoryPool::map_slab(std::size_t block_bytes) {
  const std::size_t bytes = std::max(options_.slab_bytes, block_bytes) / block_bytes * block_bytes;
  if (stats_.slab_bytes + bytes > options_.max_bytes) return_idle(0);  // of other block sizes
  if (stats_.slab_bytes + bytes > options_.max_bytes) {
    ++stats_.refused;
    return fail(Errc::memory_limit, "the registered pool holds " + std::to_string(stats_.slab_bytes) +
                                        " of at most " + std::to_string(options_.max_bytes) +
                                        " bytes; close connections, shrink their buffers or raise the cap");
  }
  Result<SharedMemory> memory = map_shared(bytes);
  if (!memory) return std::unexpected(memory.error());
  stats_.slab_bytes += bytes;
  ++stats_.slabs;
  return std::make_unique<Slab>(*memory, block_bytes);
}

void MemoryPool::give_back(Slab& slab, std::uint32_t index) {
  slab.free.push_back(index);
  stats_.used_bytes -= slab.block_bytes;
  --stats_.blocks;
}

void MemoryPool::trim() {
  const std::size_t unneeded =
      least_free_bytes_ > options_.keep_bytes ? least_free_bytes_ - options_.keep_bytes : 0;
  if (unneeded > 0) return_idle(free_bytes() - unneeded);
  least_free_bytes_ = free_bytes();
}

void MemoryPool::return_idle(std::size_t keep) {
  for (auto& [block_bytes, list] : slabs_) {
    std::erase_if(list, [&](const auto& slab) {
      if (!slab->idle() || free_bytes() <= keep) return false;
      stats_.slab_bytes -= slab->memory.size();
      --stats_.slabs;
      ++stats_.slabs_returned;
      return true;
    });
  }
}

MemoryPool::Block::Block(Block&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      slab_(std::exchange(other.slab_, nullptr)),
      index_(other.index_),
      was_used_(other.was_used_),
      bytes_(std::exchange(other.bytes_, {})) {}

MemoryPool::Block& MemoryPool::Block::operator=(Block&& other) noexcept {
  if (this == &other) return *this;
  if (slab_ != nullptr) pool_->give_back(*slab_, index_);
  pool_ = std::exchange(other.pool_, nullptr);
  slab_ = std::exchange(other.slab_, nullptr);
  index_ = other.index_;
  was_used_ = other.was_used_;
  bytes_ = std::exchange(other.bytes_, {});
  return *this;
}

MemoryPool::Block::~Block() {
  if (slab_ != nullptr) pool_->give_back(*slab_, index_);
}

Result<std::uint32_t> MemoryPool::Block::lkey() {
  if (!slab_->region) {
    Result<MemoryRegion> region = MemoryRegion::enroll(pool_->pd_, slab_->memory, Access::local);
    if (!region) return std::unexpected(region.error());
    slab_->region = std::move(*region);
  }
  return slab_->region->lkey();
}

}  // namespace weir::rdma
