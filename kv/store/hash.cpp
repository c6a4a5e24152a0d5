#include "kv/store/hash.hpp"

#include <cstring>

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

std::optional<StoredText> Hash::find(std::string_view field) const {
  if (!small()) {
    const HashEntry* entry = table_->look(field);
    return entry == nullptr ? std::nullopt : std::optional<StoredText>(std::in_place, entry->value);
  }
  const PackedPairs::Place pair = pairs_.find(listpack::Element(field));
  return pair == pairs_.end() ? std::nullopt : std::optional(StoredText::of(PackedPairs::value_of(pair)));
}

bool Hash::set(std::string_view field, const GivenText& value, SmallLimits limits) {
  const bool fits = field.size() <= limits.bytes && value.text.size() <= limits.bytes &&
                    field.size() + value.text.size() < PackedPairs::most_bytes - pairs_.bytes();
  if (small() && !fits) grow();
  if (small()) {
    const listpack::Element key(field);
    const listpack::Element content(value.text);
    const PackedPairs::Place pair = pairs_.find(key);
    if (pair != pairs_.end()) {
      pairs_.set_value(pair, content);
      return false;
    }
    pairs_.insert(pair, key, content);
    if (pairs_.size() > limits.entries) grow();
    return true;
  }
  if (HashEntry* old = table_->find(field)) {
    old->value = value.kept();
    return false;
  }
  table_->insert(HashEntry::make(field, value.kept()));
  return true;
}

bool Hash::erase(std::string_view field) {
  if (!small()) return table_->erase(field);
  const PackedPairs::Place pair = pairs_.find(listpack::Element(field));
  if (pair == pairs_.end()) return false;
  pairs_.erase(pair, PackedPairs::next(pair), 1);
  return true;
}

void Hash::grow() {
  auto table = std::make_unique<Entries>();
  for_each([&](std::string_view field, std::string_view value) {
    table->insert(HashEntry::make(field, Bytes(value)));
  });
  table_ = std::move(table);
  pairs_.clear();
}

Hash Hash::copy() const {
  Hash other;
  if (small()) {
    other.pairs_ = pairs_.copy();
    return other;
  }
  other.table_ = std::make_unique<Entries>();
  table_->for_each([&](const HashEntry& entry) {
    other.table_->insert(HashEntry::make(entry.field(), entry.value));
    return true;
  });
  return other;
}

std::size_t Hash::heap_size() const {
  if (small()) return pairs_.heap_size();
  std::size_t size = sizeof(Entries) + table_->bucket_bytes();
  table_->for_each([&](const HashEntry& entry) {
    size += sizeof(HashEntry) + entry.field_size + entry.value.heap_size();
    return true;
  });
  return size;
}

}  // namespace weir::kv
