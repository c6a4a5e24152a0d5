#include "kv/store/field_times.hpp"

#include <cstring>
#include <iterator>

namespace weir::kv {

TimedField* TimedField::make(std::string_view name, std::int64_t at_ms) {
  void* raw = ::operator new(sizeof(TimedField) + name.size());
  auto* field = new (raw) TimedField{at_ms, static_cast<std::uint32_t>(name.size())};
  std::memcpy(static_cast<void*>(field + 1), name.data(), name.size());
  return field;
}

void TimedFieldTraits::destroy(TimedField* field) { ::operator delete(field); }

FieldTimes::FieldTimes(const FieldTimes& other) : hidden_until_ms_(other.hidden_until_ms_) {
  other.fields_.for_each([this](const TimedField& field) {
    set(field.name(), field.at_ms);
    return true;
  });
}

void FieldTimes::set(std::string_view field, std::int64_t at_ms) {
  TimedField* timed = fields_.find(field);
  if (timed == nullptr) {
    timed = TimedField::make(field, at_ms);
    fields_.insert(timed);
  } else {
    order_.erase({timed->at_ms, timed});
    timed->at_ms = at_ms;
  }
  order_.insert({at_ms, timed});
}

bool FieldTimes::erase(std::string_view field) {
  TimedField* timed = fields_.extract(field);
  if (timed == nullptr) return false;
  order_.erase({timed->at_ms, timed});
  TimedFieldTraits::destroy(timed);
  return true;
}

std::size_t FieldTimes::hidden() const {
  std::size_t count = 0;
  for (auto it = order_.begin(); it != order_.end() && it->first <= hidden_until_ms_; ++it) ++count;
  return count;
}

std::size_t FieldTimes::heap_size() const {
  std::size_t size = fields_.bucket_bytes() + order_.size() * sizeof(Place);
  fields_.for_each([&](const TimedField& field) {
    size += sizeof(TimedField) + field.size;
    return true;
  });
  return size;
}

bool FieldTimes::free_some(std::size_t most) {
  if (!order_.empty()) {
    const bool few = order_.size() <= most;
    order_.erase(order_.begin(),
                 few ? order_.end() : std::next(order_.begin(), static_cast<std::ptrdiff_t>(most)));
    return true;
  }
  return fields_.free_some(most, TimedFieldTraits::destroy);
}

}  // namespace weir::kv
