#include "kv/store/hash.hpp"

#include <memory>

namespace weir::kv {

std::optional<StoredText> Hash::find_stored(std::string_view field) const {
  if (const HashParts::Entries* table = parts_.table()) {
    const HashEntry* entry = table->look(field);
    return entry == nullptr ? std::nullopt : std::optional<StoredText>(std::in_place, entry->value);
  }
  const PackedPairs::Place pair = pairs_.find(listpack::Element(field));
  return pair == pairs_.end() ? std::nullopt : std::optional(StoredText::of(PackedPairs::value_of(pair)));
}

bool Hash::update(std::string_view field, const GivenText& value, SmallLimits limits) {
  const bool fits = field.size() <= limits.bytes && value.text.size() <= limits.bytes &&
                    field.size() + value.text.size() < PackedPairs::most_bytes - pairs_.bytes();
  if (!fits && small()) grow();
  HashParts::Entries* const table = parts_.table();
  if (table == nullptr) {
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
  if (HashEntry* old = table->find(field)) {
    old->value = value.kept();
    return false;
  }
  table->insert(HashEntry::make(field, value.kept()));
  return true;
}

bool Hash::erase(std::string_view field) {
  if (HashParts::Entries* table = parts_.table()) {
    if (!table->erase(field)) return false;
  } else {
    const PackedPairs::Place pair = pairs_.find(listpack::Element(field));
    if (pair == pairs_.end()) return false;
    pairs_.erase(pair, PackedPairs::next(pair), 1);
  }
  if (parts_.times() != nullptr) persist(field);
  return true;
}

bool Hash::persist(std::string_view field) {
  FieldTimes* const times = parts_.times();
  if (times == nullptr || !times->erase(field)) return false;
  if (times->empty()) parts_.drop_times();
  return true;
}

void Hash::grow() {
  auto table = std::make_unique<HashParts::Entries>();
  for_each_stored([&](std::string_view field, std::string_view value) {
    table->insert(HashEntry::make(field, Bytes(value)));
  });
  parts_.take(std::move(table));
  pairs_.clear();
}

Hash Hash::copy() const {
  Hash other;
  if (const HashParts::Entries* table = parts_.table()) {
    auto entries = std::make_unique<HashParts::Entries>();
    table->for_each([&](const HashEntry& entry) {
      entries->insert(HashEntry::make(entry.field(), entry.value));
      return true;
    });
    other.parts_.take(std::move(entries));
  } else {
    other.pairs_ = pairs_.copy();
  }
  if (parts_.times() != nullptr) other.parts_.make_times(*parts_.times());
  return other;
}

std::size_t Hash::heap_size() const {
  const HashParts::Entries* table = parts_.table();
  if (table == nullptr) return pairs_.heap_size() + parts_.heap_size();
  std::size_t size = sizeof(HashParts::Entries) + table->bucket_bytes() + parts_.heap_size();
  table->for_each([&](const HashEntry& entry) {
    size += sizeof(HashEntry) + entry.field_size + entry.value.heap_size();
    return true;
  });
  return size;
}

bool Hash::free_some(std::size_t most) {
  if (parts_.times() != nullptr && parts_.times()->free_some(most)) return true;
  HashParts::Entries* const table = parts_.table();
  return table != nullptr && table->free_some(most, HashEntryTraits::destroy);
}

}  // namespace weir::kv
