// When fields of one hash expire: a time for each field that has one, and their order.
//
// The times (ms since 1970) lie beside the fields, with a copy of each name: a hash without times pays
// nothing for them, and one with few pays for few. Both a field's time and the next field to expire are found
// without looking at the others.
//
// A field whose time has come is hidden until it is removed. Whoever looks a hash up says until when its
// fields are (hide_until()), so that readers of the hash need no clock. Threading: none.
#pragma once

#include <absl/container/btree_set.h>

#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "kv/store/table.hpp"

namespace weir::kv {

struct TimedField {
  std::int64_t at_ms;
  std::uint32_t size;

  std::string_view name() const { return {reinterpret_cast<const char*>(this + 1), size}; }
  static TimedField* make(std::string_view name, std::int64_t at_ms);
};
struct TimedFieldTraits {
  static std::string_view key(const TimedField& field) { return field.name(); }
  static void destroy(TimedField* field);
};

class FieldTimes {
 public:
  static constexpr std::int64_t never = -1;

  FieldTimes() = default;
  FieldTimes(const FieldTimes& other);
  FieldTimes& operator=(const FieldTimes&) = delete;

  std::size_t size() const { return fields_.size(); }
  bool empty() const { return fields_.empty(); }

  // Times are not negative; `never` for a field that has none.
  std::int64_t of(std::string_view field) const {
    const TimedField* timed = fields_.look(field);
    return timed == nullptr ? never : timed->at_ms;
  }
  void set(std::string_view field, std::int64_t at_ms);
  bool erase(std::string_view field);

  // visit(std::string_view field) of those whose time is not after `now_ms`, the first ones first.
  template <class Visit>
  void for_each_due(std::int64_t now_ms, std::size_t most, Visit visit) const {
    for (auto it = order_.begin(); it != order_.end() && it->first <= now_ms && most != 0; ++it, --most)
      visit(it->second->name());
  }
  // When the next field expires.
  std::int64_t next_ms() const { return order_.empty() ? never : order_.begin()->first; }

  // From now on fields are hidden whose time is not after `now_ms`.
  void hide_until(std::int64_t now_ms) { hidden_until_ms_ = now_ms; }
  void hide_nothing() { hidden_until_ms_ = nothing; }
  std::int64_t hidden_until_ms() const { return hidden_until_ms_; }
  bool hides_any() const { return !order_.empty() && order_.begin()->first <= hidden_until_ms_; }
  bool hides(std::string_view field) const {
    if (!hides_any()) return false;
    const TimedField* timed = fields_.look(field);
    return timed != nullptr && timed->at_ms <= hidden_until_ms_;
  }
  // Takes time in proportion to the result.
  std::size_t hidden() const;

  std::size_t heap_size() const;
  // As Value::free_some().
  bool free_some(std::size_t most);

 private:
  static constexpr std::int64_t nothing = std::numeric_limits<std::int64_t>::min();
  using Place = std::pair<std::int64_t, TimedField*>;

  Table<TimedField, TimedFieldTraits> fields_;
  absl::btree_set<Place> order_;
  std::int64_t hidden_until_ms_ = nothing;
};

}  // namespace weir::kv
