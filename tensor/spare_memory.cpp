#include "tensor/spare_memory.hpp"

#include <algorithm>
#include <utility>

namespace weir::tensor {

Result<SpareMemory::Taken> SpareMemory::take(std::size_t bytes) {
  constexpr std::size_t page = 4096;
  const std::size_t wanted = (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
  SharedMemory memory;
  {
    const std::lock_guard lock(mutex_);
    const auto fits =
        std::ranges::find_if(spare_, [&](const SharedMemory& each) { return each.bytes().size() == wanted; });
    if (fits != spare_.end()) {
      memory = std::move(*fits);
      spare_.erase(fits);
      spare_bytes_ -= wanted;
    }
  }
  if (memory.bytes().empty()) {
    Result<SharedMemory> mapped = SharedMemory::map(wanted);
    if (!mapped) return std::unexpected(mapped.error());
    memory = std::move(*mapped);
  }
  struct Lent {
    std::shared_ptr<SpareMemory> from;
    SharedMemory memory;
    ~Lent() { from->give_back(std::move(memory)); }
  };
  const std::span<std::byte> all = memory.bytes();
  std::shared_ptr<Lent> lent(new Lent{shared_from_this(), std::move(memory)});
  return Taken{all.first(bytes), std::move(lent)};
}

void SpareMemory::give_back(SharedMemory memory) {
  std::vector<SharedMemory> dropped;  // unmapped outside the lock
  const std::lock_guard lock(mutex_);
  spare_bytes_ += memory.bytes().size();
  spare_.push_back(std::move(memory));
  while (spare_bytes_ > keep_bytes_) {
    spare_bytes_ -= spare_.front().bytes().size();
    dropped.push_back(std::move(spare_.front()));
    spare_.erase(spare_.begin());
  }
}

}  // namespace weir::tensor
