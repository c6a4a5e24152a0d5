// What a hash has besides its small form: a table if it is large, and times if fields of it expire.
//
// Both are rare among small hashes, so there is one word for both: the table's address, or that of a piece
// with table and times. Threading: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "kv/store/field_times.hpp"
#include "kv/store/table.hpp"
#include "kv/text/bytes.hpp"

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

class HashParts {
 public:
  using Entries = Table<HashEntry, HashEntryTraits>;

  HashParts() = default;
  HashParts(HashParts&& other) noexcept : word_(std::exchange(other.word_, 0)) {}
  HashParts& operator=(HashParts&& other) noexcept {
    std::swap(word_, other.word_);
    return *this;
  }
  ~HashParts() {
    if (word_ != 0) destroy();
  }

  // Null: it has none.
  Entries* table() const {
    return timed() ? piece()->table.get()
                   : reinterpret_cast<Entries*>(word_);  // NOLINT(performance-no-int-to-ptr)
  }
  FieldTimes* times() const { return timed() ? &piece()->times : nullptr; }

  void take(std::unique_ptr<Entries> table);
  FieldTimes& make_times();
  void make_times(const FieldTimes& like);  // for one that has none
  void drop_times();

  std::size_t heap_size() const { return timed() ? sizeof(Both) + times()->heap_size() : 0; }  // of the times

 private:
  struct Both {
    std::unique_ptr<Entries> table;
    FieldTimes times;
  };
  static constexpr std::uintptr_t timed_bit = 1;

  bool timed() const { return (word_ & timed_bit) != 0; }
  Both* piece() const {
    return reinterpret_cast<Both*>(word_ - timed_bit);
  }  // NOLINT(performance-no-int-to-ptr)
  void become(std::unique_ptr<Both> both);
  void destroy();

  std::uintptr_t word_ = 0;
};

}  // namespace weir::kv
