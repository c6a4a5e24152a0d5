// One key and its value: a single heap block of header, value and key bytes. Databases keep records in
// tables. Threading: none.
#pragma once

#include <cstdint>
#include <string_view>

#include "kv/store/table.hpp"
#include "kv/store/value.hpp"

namespace weir::kv {

struct Record {
  static constexpr std::int64_t never = -1;

  [[no_unique_address]] Value value;
  std::uint32_t shown_in = 0;  // by which snapshot it was taken last (shown_records.hpp); in value's padding
  std::int64_t expires_at_ms = never;
  std::uint32_t accessed = 0;  // for eviction: when it was used last or how often, as the UseClock says
  std::uint32_t key_size = 0;

  std::string_view key() const { return {reinterpret_cast<const char*>(this + 1), key_size}; }

  static Record* make(std::string_view key);
  static void destroy(Record* record);
};
static_assert(sizeof(Record) == 48);

struct RecordTraits {
  static std::string_view key(const Record& record) { return record.key(); }
  static void destroy(Record* record) { Record::destroy(record); }
};

using Records = Table<Record, RecordTraits>;

}  // namespace weir::kv
