// A hash: fields and their values. A small one is packed pairs in the order they came (as Redis's listpacks
// are, and clients see that order); past the limits it becomes a table, and stays one. Fields may have times
// at which they expire (kv/store/field_times.hpp).
//
// A field whose time has come may still be stored. Readers do not see it, as far as the times hide it; only
// size(), set(), update(), erase() and what is named "stored" count it as there.
//
// It lies in the Value that holds it (kv/store/value.hpp). What it shows is valid until it changes.
// Threading: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kv/store/hash_parts.hpp"
#include "kv/store/packed_elements.hpp"
#include "kv/store/small_limits.hpp"
#include "kv/store/stored_text.hpp"
#include "kv/text/bytes.hpp"

namespace weir::kv {

class Hash {
 public:
  // A field and its value.
  struct Pair {
    StoredText field;
    StoredText value;
  };

  std::size_t size() const {
    const HashParts::Entries* table = parts_.table();
    return table == nullptr ? pairs_.size() : table->size();
  }
  bool small() const { return parts_.table() == nullptr; }

  std::optional<StoredText> find(std::string_view field) const {
    return hides(field) ? std::nullopt : find_stored(field);
  }
  // True: the field is new. Neither text may lie in this hash. The field stays for good.
  bool set(std::string_view field, const GivenText& value, SmallLimits limits) {
    if (parts_.times() != nullptr) persist(field);
    return update(field, value, limits);
  }
  // Likewise, but the field keeps its time.
  bool update(std::string_view field, const GivenText& value, SmallLimits limits);
  bool erase(std::string_view field);

  // Null: no field expires.
  const FieldTimes* times() const { return parts_.times(); }
  FieldTimes* times() { return parts_.times(); }
  std::int64_t time_of(std::string_view field) const {
    return parts_.times() == nullptr ? FieldTimes::never : parts_.times()->of(field);
  }
  // For a field that is stored.
  void expire_at(std::string_view field, std::int64_t at_ms) { parts_.make_times().set(field, at_ms); }
  // False: it had no time.
  bool persist(std::string_view field);

  bool hides(std::string_view field) const {
    return parts_.times() != nullptr && parts_.times()->hides(field);
  }
  bool hides_any() const { return parts_.times() != nullptr && parts_.times()->hides_any(); }
  std::size_t shown() const { return size() - (hides_any() ? parts_.times()->hidden() : 0); }

  // visit(const StoredText& field, const StoredText& value)
  template <class Visit>
  void for_each(Visit visit) const {
    if (!hides_any()) return for_each_stored(visit);
    for_each_stored([&](const StoredText& field, const StoredText& value) {
      if (!hides(field)) visit(field, value);
    });
  }
  template <class Visit>
  void for_each_stored(Visit visit) const {
    if (const HashParts::Entries* table = parts_.table()) {
      table->for_each([&](const HashEntry& entry) {
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
    const HashParts::Entries* table = parts_.table();
    if (table == nullptr) {
      for_each(visit);
      return 0;
    }
    const bool some_hidden = hides_any();
    return table->scan(cursor, [&](const HashEntry& entry) {
      if (some_hidden && hides(entry.field())) return;
      visit(StoredText(entry.field()), StoredText(entry.value));
    });
  }
  // Any of those stored; call it while none is hidden. For a small hash it takes time in proportion to its
  // size.
  template <class Random>
  Pair sample(Random&& random) const {
    const HashParts::Entries* table = parts_.table();
    if (table == nullptr) return pair_at(pairs_.at(random() % pairs_.size()));
    const HashEntry* entry = table->sample(random);
    return {StoredText(entry->field()), StoredText(entry->value)};
  }

  Hash copy() const;
  std::size_t heap_size() const;
  // As Value::free_some().
  bool free_some(std::size_t most);

 private:
  static Pair pair_at(PackedPairs::Place pair) {
    return {StoredText::of(pair), StoredText::of(PackedPairs::value_of(pair))};
  }
  std::optional<StoredText> find_stored(std::string_view field) const;
  void grow();

  PackedPairs pairs_;  // while it is small
  HashParts parts_;
};

}  // namespace weir::kv
