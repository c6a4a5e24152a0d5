#include "rnic/protection_table.hpp"

namespace weir::rnic {

std::optional<std::uint32_t> ProtectionTable::insert(const Region& region) {
  const std::lock_guard lock(mutex_);
  std::uint32_t index;
  // First-freed first-reused would revisit a generation after 255 reuses of one index; taking a fresh index
  // while there are few freed ones spreads them.
  if (free_.size() > 1024 || fresh_ >= max_mrs) {
    if (free_.empty()) return std::nullopt;
    index = free_.front();
    free_.pop_front();
  } else {
    index = fresh_++;
  }
  if (generation_.size() <= index) generation_.resize(index + 1, 0);
  if (++generation_[index] == 0) generation_[index] = 1;

  TptEntry& e = entries_[index];
  e.addr = region.addr;
  e.base = region.base;
  e.length = region.length;
  e.access = region.access;
  e.pd = region.pd;
  e.window = region.window;
  e.window_offset = region.window_offset;
  const std::uint32_t key = index << 8 | generation_[index];
  // release: pairs with the initiator's acquire of key; otherwise it could check a new key against old
  // bounds.
  e.key.store(key, std::memory_order_release);
  return key;
}

void ProtectionTable::invalidate(std::uint32_t key) {
  // seq_cst: the initiator stores its hazard and then loads the key; we store the key and then load hazards.
  // One of the two must see the other, or a write would land in freed memory.
  entries_[(key >> 8) & (max_mrs - 1)].key.store(0, std::memory_order_seq_cst);
}

void ProtectionTable::release(std::uint32_t key) {
  const std::lock_guard lock(mutex_);
  free_.push_back(key >> 8);
}

void ProtectionTable::update(std::uint32_t key, std::uint32_t access, std::uint32_t pd) {
  TptEntry& e = entries_[(key >> 8) & (max_mrs - 1)];
  e.key.store(0, std::memory_order_seq_cst);
  e.access = access;
  e.pd = pd;
  e.key.store(key, std::memory_order_release);
}

}  // namespace weir::rnic
