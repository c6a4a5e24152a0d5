#include "kv/store/hash.hpp"

#include <algorithm>

#include "kv/store/tight_room.hpp"

namespace weir::kv {

HashEntry* HashEntry::make(std::string_view field, Bytes value) {
  void* raw = ::operator new(sizeof(HashEntry) + field.size());
  auto* entry = new (raw) HashEntry{std::move(value), static_cast<std::uint32_t>(field.size())};
  std::memcpy(static_cast<void*>(entry + 1), field.data(), field.size());
  return entry;
}

void HashEntryTraits::destroy(HashEntry* entry) {
  entry->~HashEntry();
  ::operator delete(entry);
}

Bytes* Hash::find(std::string_view field) {
  if (!small_) {
    HashEntry* entry = table_.find(field);
    return entry == nullptr ? nullptr : &entry->value;
  }
  const auto it = std::ranges::find_if(pairs_, [&](const auto& pair) { return pair.first == field; });
  return it == pairs_.end() ? nullptr : &it->second;
}

bool Hash::set(std::string_view field, Bytes value, SmallLimits limits) {
  if (small_ && (field.size() > limits.bytes || value.size() > limits.bytes)) grow();
  if (Bytes* old = find(field)) {
    *old = std::move(value);
    return false;
  }
  if (small_) {
    make_tight_room(pairs_);
    pairs_.emplace_back(Bytes(field), std::move(value));
    if (pairs_.size() > limits.entries) grow();
  } else {
    table_.insert(HashEntry::make(field, std::move(value)));
  }
  return true;
}

bool Hash::erase(std::string_view field) {
  if (!small_) return table_.erase(field);
  const auto it = std::ranges::find_if(pairs_, [&](const auto& pair) { return pair.first == field; });
  if (it == pairs_.end()) return false;
  pairs_.erase(it);
  return true;
}

void Hash::grow() {
  small_ = false;
  for (auto& [field, value] : pairs_) table_.insert(HashEntry::make(field.view(), std::move(value)));
  pairs_ = {};
}

Hash Hash::copy() const {
  Hash other;
  other.small_ = small_;
  other.pairs_ = pairs_;
  table_.for_each([&](const HashEntry& entry) {
    other.table_.insert(HashEntry::make(entry.field(), entry.value));
    return true;
  });
  return other;
}

std::size_t Hash::heap_size() const {
  std::size_t size = pairs_.capacity() * sizeof(pairs_[0]) + table_.bucket_bytes();
  for (const auto& [field, value] : pairs_) size += field.heap_size() + value.heap_size();
  table_.for_each([&](const HashEntry& entry) {
    size += sizeof(HashEntry) + entry.field_size + entry.value.heap_size();
    return true;
  });
  return size;
}

}  // namespace weir::kv
