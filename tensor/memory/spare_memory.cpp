#include "tensor/memory/spare_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace weir::tensor {
namespace {

constexpr std::size_t cache_line = 64, page = 4096, huge_page = std::size_t{2} << 20;
// From here on it is cheaper to let the kernel give new pages than to write zeros, and costs nothing for
// bytes that never come.
constexpr std::size_t least_paged_bytes = std::size_t{256} << 10;

std::size_t unit_of(std::size_t bytes) {
  return bytes >= 2 * huge_page ? huge_page : bytes >= least_paged_bytes ? page : cache_line;
}
std::size_t rounded(std::size_t bytes) { return (bytes / unit_of(bytes) + 1) * unit_of(bytes); }

}  // namespace

void SpareMemory::Free::operator()(std::byte* memory) const { std::free(memory); }

Result<SpareMemory::Taken> SpareMemory::take(std::size_t bytes) {
  if (Block block = reuse(bytes); block.memory != nullptr) return lend(std::move(block), bytes);
  Result<Block> made = make(bytes);
  if (!made) return std::unexpected(made.error());
  return lend(std::move(*made), bytes);
}

Result<SpareMemory::Taken> SpareMemory::take_zeroed(std::size_t bytes) {
  Block block = reuse(bytes);
  if (block.memory == nullptr) {
    Result<Block> made = make(bytes);
    if (!made) return std::unexpected(made.error());
    return lend(std::move(*made), bytes);
  }
  zero(block);
  return lend(std::move(block), bytes);
}

// Empty if no block of that size is spare.
SpareMemory::Block SpareMemory::reuse(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto fits = std::ranges::find(spare_, rounded(bytes), &Block::bytes);
  if (fits == spare_.end()) return {};
  Block block = std::move(*fits);
  spare_.erase(fits);
  spare_bytes_ -= block.bytes;
  return block;
}

Result<SpareMemory::Block> SpareMemory::make(std::size_t bytes) {
  const std::size_t unit = unit_of(bytes), wanted = rounded(bytes);
  Block block{std::unique_ptr<std::byte, Free>(static_cast<std::byte*>(std::aligned_alloc(unit, wanted))),
              wanted};
  if (block.memory == nullptr)
    return fail(Errc::too_much, "there is no memory for " + std::to_string(bytes) + " bytes");
  zero(block);
  if (unit == huge_page) madvise(block.memory.get(), wanted, MADV_HUGEPAGE);  // fewer page faults
  return block;
}

void SpareMemory::zero(const Block& block) {
  const bool paged = block.bytes >= least_paged_bytes;
  // The kernel refuses this for locked memory.
  if (paged && madvise(block.memory.get(), block.bytes, MADV_DONTNEED) == 0) return;
  std::memset(block.memory.get(), 0, block.bytes);
}

SpareMemory::Taken SpareMemory::lend(Block block, std::size_t bytes) {
  struct Lent {
    std::shared_ptr<SpareMemory> from;
    Block block;
    ~Lent() { from->give_back(std::move(block)); }
  };
  std::byte* at = block.memory.get();
  std::shared_ptr<Lent> lent(new Lent{shared_from_this(), std::move(block)});
  return Taken{std::span(at, bytes), std::move(lent)};
}

void SpareMemory::give_back(Block block) {
  std::vector<Block> dropped;  // freed outside the lock
  const std::lock_guard lock(mutex_);
  spare_bytes_ += block.bytes;
  spare_.push_back(std::move(block));
  while (spare_bytes_ > keep_bytes_) {
    spare_bytes_ -= spare_.front().bytes;
    dropped.push_back(std::move(spare_.front()));
    spare_.erase(spare_.begin());
  }
}

}  // namespace weir::tensor
