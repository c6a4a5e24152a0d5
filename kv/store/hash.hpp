// A hash: fields and their values. A small one is a row of pairs in the order they came (as Redis's listpacks
// are, and clients see that order); past the limits it becomes a table, and stays one.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "kv/bytes.hpp"
#include "kv/store/table.hpp"

namespace weir::kv {

// Up to how many entries of how many bytes a collection stays small.
struct SmallLimits {
  std::size_t entries;
  std::size_t bytes;
};

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
  std::size_t size() const { return small_ ? pairs_.size() : table_.size(); }
  bool small() const { return small_; }

  Bytes* find(std::string_view field);
  // True: the field is new.
  bool set(std::string_view field, Bytes value, SmallLimits limits);
  bool erase(std::string_view field);

  // visit(std::string_view field, const Bytes& value)
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [field, value] : pairs_) visit(field.view(), value);
    table_.for_each([&](const HashEntry& entry) {
      visit(entry.field(), entry.value);
      return true;
    });
  }
  template <class Visit>
  std::uint64_t scan(std::uint64_t cursor, Visit visit) const {
    if (small_) {
      for_each(visit);
      return 0;
    }
    return table_.scan(cursor, [&](const HashEntry& entry) { visit(entry.field(), entry.value); });
  }
  template <class Random>
  std::pair<std::string_view, const Bytes*> sample(Random&& random) const {
    if (small_) {
      const auto& [field, value] = pairs_[random() % pairs_.size()];
      return {field.view(), &value};
    }
    const HashEntry* entry = table_.sample(random);
    return {entry->field(), &entry->value};
  }

  Hash copy() const;
  std::size_t heap_size() const;
  // As Value::free_some().
  bool free_some(std::size_t most) { return table_.free_some(most, HashEntryTraits::destroy); }

 private:
  void grow();

  bool small_ = true;
  std::vector<std::pair<Bytes, Bytes>> pairs_;
  Table<HashEntry, HashEntryTraits> table_;
};

}  // namespace weir::kv
