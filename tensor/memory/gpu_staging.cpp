#include "tensor/memory/gpu_staging.hpp"

#include <algorithm>
#include <utility>

namespace weir::tensor {

GpuStaging& GpuStaging::of_process() {
  static auto* const all = new GpuStaging(Limits{});
  return *all;
}

GpuStaging::~GpuStaging() {
  for (auto& [memory, block] : lent_) spare_.push_back(std::move(block));
  end(std::move(spare_));
}

Result<std::byte*> GpuStaging::take(Gpu& gpu, std::size_t bytes) {
  constexpr std::size_t page = 4096, large = std::size_t{2} << 20;
  const std::size_t unit = bytes >= 2 * large ? large : page;
  const std::size_t wanted = (bytes / unit + 1) * unit;
  {
    const std::lock_guard lock(mutex_);
    const auto fits =
        std::ranges::find(spare_, wanted, [](const Block& each) { return each.memory.bytes().size(); });
    if (fits != spare_.end()) {
      Block block = std::move(*fits);
      spare_.erase(fits);
      spare_bytes_ -= wanted;
      std::byte* const at = block.memory.bytes().data();
      lent_.emplace(at, std::move(block));
      return at;
    }
  }
  Result<SharedMemory> memory = SharedMemory::map(wanted);
  if (!memory) return std::unexpected(memory.error());
  Block block{std::move(*memory), nullptr};
  if (may_pin(wanted)) {
    if (gpu.pin(block.memory.bytes())) {
      block.pinned_by = &gpu;
    } else {
      const std::lock_guard lock(mutex_);
      pinned_bytes_ -= wanted;
    }
  }
  std::byte* const at = block.memory.bytes().data();
  const std::lock_guard lock(mutex_);
  lent_.emplace(at, std::move(block));
  return at;
}

GpuStaging::Block GpuStaging::oldest_spare() {
  Block block = std::move(spare_.front());
  spare_.erase(spare_.begin());
  const std::size_t size = block.memory.bytes().size();
  spare_bytes_ -= size;
  if (block.pinned_by != nullptr) pinned_bytes_ -= size;
  return block;
}

// Reserves `bytes` of the pinned budget, dropping spare blocks to make room. Returns false if they do not
// fit.
bool GpuStaging::may_pin(std::size_t bytes) {
  std::vector<Block> dropped;
  bool fits = false;
  {
    const std::lock_guard lock(mutex_);
    while (pinned_bytes_ + bytes > limits_.pinned_bytes && !spare_.empty()) dropped.push_back(oldest_spare());
    fits = pinned_bytes_ + bytes <= limits_.pinned_bytes;
    if (fits) pinned_bytes_ += bytes;
  }
  end(std::move(dropped));
  return fits;
}

void GpuStaging::give_back(std::byte* memory) {
  std::vector<Block> dropped;
  {
    const std::lock_guard lock(mutex_);
    const auto found = lent_.find(memory);
    if (found == lent_.end()) return;
    spare_bytes_ += found->second.memory.bytes().size();
    spare_.push_back(std::move(found->second));
    lent_.erase(found);
    while (spare_bytes_ > limits_.keep_bytes) dropped.push_back(oldest_spare());
  }
  end(std::move(dropped));
}

// Call without the lock: unpinning is slow.
void GpuStaging::end(std::vector<Block> blocks) {
  for (const Block& each : blocks)
    if (each.pinned_by != nullptr) each.pinned_by->unpin(each.memory.bytes());
}

std::size_t GpuStaging::pinned_bytes() const {
  const std::lock_guard lock(mutex_);
  return pinned_bytes_;
}

std::size_t GpuStaging::spare_bytes() const {
  const std::lock_guard lock(mutex_);
  return spare_bytes_;
}

}  // namespace weir::tensor
