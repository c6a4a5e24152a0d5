#include "kv/store/snapshot_walk.hpp"

#include <algorithm>
#include <utility>

#include "kv/store/lazy_free.hpp"

namespace weir::kv {

SnapshotWalk::SnapshotWalk(std::uint32_t number, Databases& databases, const bool& changing,
                           LazyFree& lazy_free, Show show)
    : number_(number),
      databases_(&databases),
      changing_(&changing),
      lazy_free_(&lazy_free),
      show_(std::move(show)) {
  for (const auto& db : databases) {
    places_.push_back({db->index()});
    db->take_part_in(this);
  }
}

SnapshotWalk::~SnapshotWalk() {
  for (const auto& db : *databases_) db->take_part_in(nullptr);
  for (Orphan& orphan : orphans_) lazy_free_->take(std::move(orphan.records));
}

void SnapshotWalk::show(int database, Record& record) {
  if (record.shown_in == number_) return;
  record.shown_in = number_;
  show_(database, record);
}

void SnapshotWalk::step_in(Records& records, Place& place) {
  place.cursor = records.scan(place.cursor, [&](Record& record) { show(place.database, record); });
  place.over = place.cursor == 0;
}

bool SnapshotWalk::step() {
  if (!orphans_.empty()) {
    Orphan& orphan = orphans_.front();
    step_in(orphan.records, orphan.place);
    if (orphan.place.over) {
      lazy_free_->take(std::move(orphan.records));
      orphans_.pop_front();
    }
    return true;
  }
  const auto next = std::ranges::find(places_, false, &Place::over);
  if (next == places_.end()) return false;
  step_in((*databases_)[static_cast<std::size_t>(next - places_.begin())]->records(), *next);
  return true;
}

void SnapshotWalk::before_change(const Keyspace& db, Record& record) {
  show(places_[static_cast<std::size_t>(db.index())].database, record);
}

void SnapshotWalk::emptied(const Keyspace& db, Records records) {
  Place& place = places_[static_cast<std::size_t>(db.index())];
  if (place.over || records.empty()) return lazy_free_->take(std::move(records));
  orphans_.push_back({std::move(records), place});
  place.over = true;
}

void SnapshotWalk::swapped(const Keyspace& a, const Keyspace& b) {
  std::swap(places_[static_cast<std::size_t>(a.index())], places_[static_cast<std::size_t>(b.index())]);
}

}  // namespace weir::kv
