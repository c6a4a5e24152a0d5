#include "rnic/memory/protection_table.hpp"

#include "rnic/memory/secret_order.hpp"

namespace weir::rnic {
namespace {

// So many entries, 4 MiB of the table, are filled before the next.
constexpr std::uint32_t block_bits = 16, block_entries = 1u << block_bits;
constexpr std::uint32_t blocks = max_keys / block_entries;
constexpr std::uint32_t generation_bits = 12;
// Which permutation: of the blocks, of the entries of a block, of the generations of a place.
constexpr std::uint32_t of_blocks = 0, of_entries = 1, of_generations = of_entries + blocks;

std::uint32_t key_of(std::uint32_t index, std::uint32_t generation) {
  return generation >> 8 << 28 | index << 8 | (generation & 0xff);
}

}  // namespace

std::uint32_t ProtectionTable::index_of_place(std::uint32_t place) const {
  const std::uint32_t block = in_secret_order(secret_, of_blocks, 4, place >> block_bits);
  const std::uint32_t entry =
      in_secret_order(secret_, of_entries + block, block_bits, place & (block_entries - 1));
  return block << block_bits | entry;
}

std::uint32_t ProtectionTable::place_of(std::uint32_t key) const {
  const std::uint32_t index = (key >> 8) & (max_keys - 1);
  const std::uint32_t block = index >> block_bits;
  const std::uint32_t entry =
      from_secret_order(secret_, of_entries + block, block_bits, index & (block_entries - 1));
  return from_secret_order(secret_, of_blocks, 4, block) << block_bits | entry;
}

// Goes through all generations of a place before one comes again. Never key 0, "none".
std::uint32_t ProtectionTable::next_key(std::uint32_t place) {
  if (uses_.size() <= place) uses_.resize(place + 1);
  for (;;) {
    const std::uint32_t use = uses_[place]++ & ((1u << generation_bits) - 1);
    const std::uint32_t generation = in_secret_order(secret_, of_generations + place, generation_bits, use);
    if (const std::uint32_t key = key_of(index_of_place(place), generation); key != 0) return key;
  }
}

// The next key of a free index. Regions and windows have separate limits.
std::optional<std::uint32_t> ProtectionTable::take_index(For what) {
  const std::lock_guard lock(mutex_);
  std::uint32_t& used = what == For::region ? regions_ : windows_;
  if (used == (what == For::region ? max_mrs : max_mws)) return std::nullopt;
  std::uint32_t place;
  // First-freed first-reused would revisit a generation after few reuses of one place; taking a fresh one
  // while there are few freed ones spreads them.
  if (free_.size() > 1024 || fresh_ == max_keys) {
    if (free_.empty()) return std::nullopt;
    place = free_.front();
    free_.pop_front();
  } else {
    place = fresh_++;
  }
  ++used;
  return next_key(place);
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
