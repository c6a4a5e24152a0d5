#include "tensor/spare_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

namespace weir::tensor {
namespace {
constexpr std::size_t cache_line = 64, huge_page = std::size_t{2} << 20;
}

void SpareMemory::Free::operator()(std::byte* memory) const { std::free(memory); }

Result<SpareMemory::Taken> SpareMemory::take(std::size_t bytes) {
  const std::size_t unit = bytes >= 2 * huge_page ? huge_page : cache_line;
  const std::size_t wanted = (bytes / unit + 1) * unit;
  Block block;
  {
    const std::lock_guard lock(mutex_);
    const auto fits = std::ranges::find(spare_, wanted, &Block::bytes);
    if (fits != spare_.end()) {
      block = std::move(*fits);
      spare_.erase(fits);
      spare_bytes_ -= wanted;
    }
  }
  if (block.memory == nullptr) {
    block = {std::unique_ptr<std::byte, Free>(static_cast<std::byte*>(std::aligned_alloc(unit, wanted))),
             wanted};
    if (block.memory == nullptr)
      return fail(Errc::too_much, "there is no memory for " + std::to_string(bytes) + " bytes");
    if (unit == huge_page) madvise(block.memory.get(), wanted, MADV_HUGEPAGE);  // fewer page faults
  }
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
