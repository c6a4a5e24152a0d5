// The hashes of one database whose fields expire, ordered by when the next field of each does.
//
// A time may be too early: a command that takes a field its time need not look for the hash's next one. It is
// never too late. Threading: none.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <utility>

#include "kv/text/spare_room.hpp"

namespace weir::kv {

struct Record;

class ExpiringHashes {
 public:
  bool any() const { return !times_.empty(); }
  std::size_t size() const { return times_.size(); }
  // If there is one.
  std::int64_t first_ms() const { return order_.begin()->first; }
  Record& first() const { return *order_.begin()->second; }

  void put(Record& record, std::int64_t next_ms) {
    const auto [place, fresh] = times_.try_emplace(&record, next_ms);
    if (!fresh) order_.erase({std::exchange(place->second, next_ms), &record});
    order_.insert({next_ms, &record});
  }
  void forget(Record& record) {
    const auto place = times_.find(&record);
    if (place == times_.end()) return;
    order_.erase({place->second, &record});
    times_.erase(place);
    free_if_empty(times_);
  }
  void clear() {
    order_.clear();
    times_.clear();
  }
  void swap(ExpiringHashes& other) noexcept {
    order_.swap(other.order_);
    times_.swap(other.times_);
  }

 private:
  absl::btree_set<std::pair<std::int64_t, Record*>> order_;
  absl::flat_hash_map<Record*, std::int64_t> times_;
};

}  // namespace weir::kv
