#include "kv/store/shown_records.hpp"

#include <algorithm>
#include <utility>

#include "kv/store/lazy_free.hpp"

namespace weir::kv {

ShownRecords::ShownRecords(std::uint32_t number, std::size_t databases, const bool& changing,
                           LazyFree& lazy_free, Show show)
    : number_(number), changing_(&changing), lazy_free_(&lazy_free), show_(std::move(show)) {
  for (std::size_t i = 0; i < databases; ++i) places_.push_back({static_cast<int>(i)});
}

ShownRecords::~ShownRecords() {
  for (Left& left : left_) lazy_free_->take(std::move(left.records));
}

void ShownRecords::show(int database, Record& record) {
  if (record.shown_in == number_) return;
  record.shown_in = number_;
  show_(database, record);
}

void ShownRecords::step_in(Place& place, Records& records) {
  place.cursor = records.scan(place.cursor, [&](Record& record) { show(place.database, record); });
  place.over = place.cursor == 0;
}

bool ShownRecords::step_in_left() {
  if (left_.empty()) return false;
  Left& left = left_.front();
  step_in(left.place, left.records);
  if (left.place.over) {
    lazy_free_->take(std::move(left.records));
    left_.pop_front();
  }
  return true;
}

std::size_t ShownRecords::records_left() const {
  std::size_t count = 0;
  for (const Left& left : left_) count += left.records.size();
  return count;
}

std::optional<int> ShownRecords::unfinished() const {
  const auto next = std::ranges::find(places_, false, &Place::over);
  if (next == places_.end()) return std::nullopt;
  return static_cast<int>(next - places_.begin());
}

void ShownRecords::emptied(int database, Records records) {
  Place& place = place_of(database);
  if (place.over || records.empty()) return lazy_free_->take(std::move(records));
  left_.push_back({std::move(records), place});
  place.over = true;
}

void ShownRecords::swapped(int a, int b) { std::swap(place_of(a), place_of(b)); }

}  // namespace weir::kv
