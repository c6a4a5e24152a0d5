// A hash: fields and their values. A small one is packed pairs in the order they came (as Redis's listpacks
// are, and clients see that order); past the limits it becomes a table, and stays one.
//
// It lies in the Value that holds it (kv/store/value.hpp). What it shows is valid until it changes.
// Threading: none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "kv/bytes.hpp"
#include "kv/store/packed_pairs.hpp"
#include "kv/store/small_limits.hpp"
#include "kv/store/stored_text.hpp"
#include "kv/store/table.hpp"

namespace weir::kv {

struct HashEntry {
  Bytes value;
  std::uint32_t field_size;

  std::string_view field() const { return {reinterpret_cast<const char*>(this + 1), field_size}; }
  static HashEntry* make(std::string_view field, Bytes value);
};
struct HashEntryTraits {
  static std::string_view key(const HashEntry& entry) { return entry.field(); }
  static void destroy(HashEntry* entry);
};

class Hash {
 public:
  // A field and its value.
  struct Pair {
    StoredText field;
    StoredText value;
  };

  std::size_t size() const { return small() ? pairs_.size() : table_->size(); }
  bool small() const { return table_ == nullptr; }

  std::optional<StoredText> find(std::string_view field) const;
  // True: the field is new. Neither text may lie in this hash.
  bool set(std::string_view field, const GivenText& value, SmallLimits limits);
  bool erase(std::string_view field);

  // visit(const StoredText& field, const StoredText& value)
  template <class Visit>
  void for_each(Visit visit) const {
    if (!small()) {
      table_->for_each([&](const HashEntry& entry) {
        visit(StoredText(entry.field()), StoredText(entry.value));
        return true;
      });
      return;
    }
    for (PackedPairs::Place pair = pairs_.begin(); pair != pairs_.end(); pair = PackedPairs::next(pair)) {
      const Pair stored = pair_at(pair);
      visit(stored.field, stored.value);
    }
  }
  template <class Visit>
  std::uint64_t scan(std::uint64_t cursor, Visit visit) const {
    if (small()) {
      for_each(visit);
      return 0;
    }
    return table_->scan(
        cursor, [&](const HashEntry& entry) { visit(StoredText(entry.field()), StoredText(entry.value)); });
  }
  // For a small one it takes time in proportion to its size.
  template <class Random>
  Pair sample(Random&& random) const {
    if (small()) return pair_at(pairs_.at(random() % pairs_.size()));
    const HashEntry* entry = table_->sample(random);
    return {StoredText(entry->field()), StoredText(entry->value)};
  }

  Hash copy() const;
  std::size_t heap_size() const;
  // As Value::free_some().
  bool free_some(std::size_t most) { return !small() && table_->free_some(most, HashEntryTraits::destroy); }

 private:
  using Entries = Table<HashEntry, HashEntryTraits>;

  static Pair pair_at(PackedPairs::Place pair) {
    return {StoredText::of(pair), StoredText::of(PackedPairs::value_of(pair))};
  }
  void grow();

  PackedPairs pairs_;               // while it is small
  std::unique_ptr<Entries> table_;  // from then on
};

}  // namespace weir::kv
