#include "kv/store/lazy_free.hpp"

#include <utility>

namespace weir::kv {

void LazyFree::take_if_large(Value& value) {
  if (value.elements() > large) values_.push_back(std::move(value));
}

void LazyFree::take(Records records) {
  if (!records.empty()) tables_.push_back(std::move(records));
}

void LazyFree::free_some(std::size_t elements) {
  // A table's records may leave large values behind.
  if (!values_.empty()) {
    if (values_.front().free_some(elements)) return;
    values_.pop_front();
    ++freed_;
  } else if (!tables_.empty()) {
    const auto destroy = [this](Record* record) {
      take_if_large(record->value);
      Record::destroy(record);
    };
    if (tables_.front().free_some(elements, destroy)) return;
    tables_.pop_front();
    ++freed_;
  }
}

}  // namespace weir::kv
