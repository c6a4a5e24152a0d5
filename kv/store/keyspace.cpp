#include "kv/store/keyspace.hpp"

#include <vector>

#include "kv/store/hash.hpp"
#include "kv/store/lazy_free.hpp"
#include "kv/store/shown_records.hpp"

namespace weir::kv {

Record* Keyspace::peek(std::string_view key, std::int64_t now_ms) {
  Record* record = records_.find(key);
  if (record == nullptr) return nullptr;
  if (!is_due(*record, now_ms)) {
    if (hashes_.any()) hide_due_fields(*record, now_ms);
    if (snapshot_ != nullptr) may_change(*record);
    return record;
  }
  if (keep_ == Keep::nothing) remove(*record, Gone::expired);
  return nullptr;
}

Record& Keyspace::insert(std::string_view key) {
  if (keep_ != Keep::nothing) erase(key);
  Record* record = Record::make(key);
  record->accessed = clock_->fresh();
  if (snapshot_ != nullptr) record->shown_in = snapshot_->number();
  records_.insert(record);
  if (on_added) on_added(*this, record->key());
  return *record;
}

Record& Keyspace::insert(std::string_view key, Value value) {
  Record& record = insert(key);
  record.value = std::move(value);
  fields_changed(record);
  return record;
}

bool Keyspace::erase(std::string_view key) {
  Record* record = records_.extract(key);
  if (record == nullptr) return false;
  if (snapshot_ != nullptr) snapshot_->before_change(index_, *record);
  clear_expiry(*record);
  drop_value(*record);
  Record::destroy(record);
  return true;
}

void Keyspace::drop_value(Record& record) {
  if (hashes_.any()) hashes_.forget(record);
  lazy_free_->take_if_large(record.value);
}

void Keyspace::clear() {
  expiring_.clear();
  own_expiring_.clear();
  hashes_.clear();
  snapshot_ != nullptr ? snapshot_->emptied(index_, records_.take()) : lazy_free_->take(records_.take());
}

void Keyspace::may_change(Record& record) {
  if (snapshot_->changing()) snapshot_->before_change(index_, record);
}

void Keyspace::swap(Keyspace& other) noexcept {
  records_.swap(other.records_);
  expiring_.swap(other.expiring_);
  own_expiring_.swap(other.own_expiring_);
  hashes_.swap(other.hashes_);
  if (snapshot_ != nullptr) snapshot_->swapped(index_, other.index_);
}

void Keyspace::set_expiry(Record& record, std::int64_t at_ms) {
  clear_expiry(record);
  record.expires_at_ms = at_ms;
  expiring_.insert({at_ms, &record});
  // Nothing expires while a request of the primary runs.
  if (keep_ == Keep::primarys && !expires_nothing_) own_expiring_.insert({at_ms, &record});
}

void Keyspace::keep_expired(Keep keep) {
  keep_ = keep;
  if (keep == Keep::nothing) own_expiring_.clear();
}

void Keyspace::drop_expiry(Record& record) {
  expiring_.erase({record.expires_at_ms, &record});
  if (!own_expiring_.empty()) own_expiring_.erase({record.expires_at_ms, &record});
  record.expires_at_ms = Record::never;
}

void Keyspace::rename(Record& record, std::string_view key) {
  Record& fresh = insert(key, std::move(record.value));
  fresh.accessed = record.accessed;
  if (record.expires_at_ms != Record::never) set_expiry(fresh, record.expires_at_ms);
  erase(record.key());
}

bool Keyspace::expire_due(std::int64_t now_ms, std::size_t most) {
  if (keep_ == Keep::all || expires_nothing_) return false;
  const absl::btree_set<Expiry>& due = keep_ == Keep::primarys ? own_expiring_ : expiring_;
  for (std::size_t i = 0; i < most; ++i) {
    if (due.empty() || due.begin()->first > now_ms) return false;
    remove(*due.begin()->second, Gone::expired);
  }
  return !due.empty() && due.begin()->first <= now_ms;
}

void Keyspace::fields_changed(Record& record) {
  const FieldTimes* const times = record.value.type() == Type::hash ? record.value.hash().times() : nullptr;
  if (times != nullptr) {
    hashes_.put(record, times->next_ms());
  } else if (hashes_.any()) {
    hashes_.forget(record);
  }
}

void Keyspace::fields_changed(std::string_view key) {
  if (Record* record = records_.find(key)) fields_changed(*record);
}

void Keyspace::hide_due_fields(Record& record, std::int64_t now_ms) const {
  if (record.value.type() != Type::hash) return;
  FieldTimes* const times = record.value.hash().times();
  if (times == nullptr) return;
  expires_nothing_ ? times->hide_nothing() : times->hide_until(now_ms);
}

void Keyspace::expire_fields_of(Record& record, std::span<const std::string> fields) {
  const std::string key(record.key());
  Hash& hash = record.value.hash();
  if (snapshot_ != nullptr) snapshot_->before_change(index_, record);
  for (const std::string& field : fields) hash.erase(field);
  const Left left = hash.size() == 0 ? Left::nothing : Left::some;
  left == Left::nothing ? static_cast<void>(erase(key)) : fields_changed(record);
  if (on_fields_gone) on_fields_gone(*this, key, fields, left);
}

std::size_t Keyspace::expire_first_fields_of(Record& record, std::int64_t now_ms, std::size_t most) {
  const FieldTimes* const times = record.value.type() == Type::hash ? record.value.hash().times() : nullptr;
  std::vector<std::string> due;
  if (times != nullptr)
    times->for_each_due(now_ms, most, [&](std::string_view field) { due.emplace_back(field); });
  due.empty() ? fields_changed(record) : expire_fields_of(record, due);
  return due.size();
}

void Keyspace::expire_field(std::string_view key, std::string_view field, std::int64_t now_ms) {
  Record* const record = records_.find(key);
  if (record == nullptr || record->value.type() != Type::hash || keep_ != Keep::nothing) return;
  const std::int64_t at_ms = record->value.hash().time_of(field);
  if (at_ms == FieldTimes::never || !is_past(at_ms, now_ms)) return;
  const std::string one(field);
  expire_fields_of(*record, {&one, 1});
}

void Keyspace::expire_fields(std::string_view key, std::int64_t now_ms, std::size_t most) {
  if (keep_ != Keep::nothing || expires_nothing_) return;
  if (Record* record = records_.find(key)) expire_first_fields_of(*record, now_ms, most);
}

bool Keyspace::expire_due_fields(std::int64_t now_ms, std::size_t& most) {
  if (keep_ != Keep::nothing || expires_nothing_) return false;
  while (hashes_.any() && hashes_.first_ms() <= now_ms) {
    if (most == 0) return true;
    const std::size_t removed = expire_first_fields_of(hashes_.first(), now_ms, most);
    most -= std::max<std::size_t>(removed, 1);
  }
  return false;
}

std::int64_t Keyspace::average_ttl_ms(std::int64_t now_ms) const {
  constexpr std::size_t sampled = 32;
  std::int64_t sum = 0;
  std::int64_t count = 0;
  for (auto it = expiring_.begin(); it != expiring_.end() && count < std::int64_t{sampled}; ++it, ++count) {
    sum += it->first > now_ms ? it->first - now_ms : 0;
  }
  return count == 0 ? 0 : sum / count;
}

void Keyspace::remove(Record& record, Gone why) {
  if (on_gone) on_gone(*this, record.key(), why);
  erase(record.key());
}

Record* Keyspace::near_expiry(std::uint64_t random) const {
  const std::int64_t first = expiring_.begin()->first;
  const auto span = static_cast<std::uint64_t>(expiring_.rbegin()->first - first) + 1;
  const auto at_ms = first + static_cast<std::int64_t>(random % span);
  constexpr std::uint64_t most_steps = 16;
  auto it = expiring_.lower_bound({at_ms, nullptr});
  for (std::uint64_t step = (random >> 32) % most_steps; step > 0; --step) {
    if (++it == expiring_.end()) it = expiring_.begin();
  }
  return it->second;
}

}  // namespace weir::kv
