#include "rnic/memory/protection_table.hpp"

namespace weir::rnic {
namespace {

// Different bits for each index, which cannot be computed without the secret (splitmix64).
std::uint8_t first_generation(std::uint64_t secret, std::uint32_t index) {
  std::uint64_t mixed = secret + 0x9e3779b97f4a7c15ull * (index + 1ull);
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ull;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebull;
  return static_cast<std::uint8_t>(mixed >> 56);
}

}  // namespace

void ProtectionTable::begin_at(std::uint64_t secret) {
  secret_ = secret;
  offset_ = static_cast<std::uint32_t>(secret) & (max_keys - 1);
}

// The next key of a free index. Regions and windows have separate limits.
std::optional<std::uint32_t> ProtectionTable::take_index(For what) {
  const std::lock_guard lock(mutex_);
  std::uint32_t& used = what == For::region ? regions_ : windows_;
  if (used == (what == For::region ? max_mrs : max_mws)) return std::nullopt;
  std::uint32_t index;
  // First-freed first-reused would revisit a generation after 255 reuses of one index; taking a fresh index
  // while there are few freed ones spreads them.
  if (free_.size() > 1024 || fresh_ >= max_keys) {
    if (free_.empty()) return std::nullopt;
    index = free_.front();
    free_.pop_front();
  } else {
    index = fresh_++;
  }
  ++used;
  while (generation_.size() <= index)
    generation_.push_back(secret_ == 0
                              ? std::uint8_t{0}
                              : first_generation(secret_, static_cast<std::uint32_t>(generation_.size())));
  if (++generation_[index] == 0) generation_[index] = 1;
  return ((index + offset_) & (max_keys - 1)) << 8 | generation_[index];
}

std::optional<std::uint32_t> ProtectionTable::insert(const Region& region) {
  const auto key = take_index(For::region);
  Region local = region;
  local.access |= access::local_read;
  if (key) fill(*key, local, Qpn());
  return key;
}

std::optional<std::uint32_t> ProtectionTable::reserve() { return take_index(For::window); }

void ProtectionTable::publish(std::uint32_t key, const Region& region, Qpn only) { fill(key, region, only); }

void ProtectionTable::fill(std::uint32_t key, const Region& region, Qpn only) {
  TptEntry& e = entries_[(key >> 8) & (max_keys - 1)];
  e.addr = region.addr;
  e.base = region.base;
  e.length = region.length;
  e.access = region.access;
  e.pd = region.pd;
  e.window = region.window;
  e.window_offset = region.window_offset;
  e.qpn = only.value();
  // release: pairs with the initiator's acquire of key; otherwise it could check a new key against old
  // bounds.
  e.key.store(key, std::memory_order_release);
}

void ProtectionTable::invalidate(std::uint32_t key) {
  // seq_cst: the initiator stores its hazard and then loads the key; we store the key and then load hazards.
  // One of the two must see the other, or a write would land in freed memory.
  entries_[(key >> 8) & (max_keys - 1)].key.store(0, std::memory_order_seq_cst);
}

void ProtectionTable::release(std::uint32_t key) {
  const std::lock_guard lock(mutex_);
  free_.push_back(place_of(key));
  --regions_;
}

void ProtectionTable::release_window(std::uint32_t key) {
  const std::lock_guard lock(mutex_);
  free_.push_back(place_of(key));
  --windows_;
}

void ProtectionTable::update(std::uint32_t key, std::uint32_t rights, std::uint32_t pd) {
  TptEntry& e = entries_[(key >> 8) & (max_keys - 1)];
  e.key.store(0, std::memory_order_seq_cst);
  e.access = rights | access::local_read;
  e.pd = pd;
  e.key.store(key, std::memory_order_release);
}

}  // namespace weir::rnic
