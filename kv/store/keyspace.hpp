// One database: keys, their values, and when they expire.
//
// A record is one heap block: header, value, key bytes. Records that expire are also in an index ordered by
// time, so expiring takes no sampling: the due ones are the first ones.
//
// Time is a parameter (milliseconds since 1970). A key whose time has come does not exist for anyone: find()
// removes it. expire_due() removes the others. Threading: the server's one thread.
#pragma once

#include <absl/container/btree_set.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "kv/store/table.hpp"
#include "kv/store/value.hpp"

namespace weir::kv {

struct Record {
  static constexpr std::int64_t never = -1;

  Value value;
  std::int64_t expires_at_ms = never;
  std::uint32_t accessed = 0;  // eviction's clock: see Keyspace::touch
  std::uint32_t key_size = 0;

  std::string_view key() const { return {reinterpret_cast<const char*>(this + 1), key_size}; }

  static Record* make(std::string_view key);
  static void destroy(Record* record);
};

struct RecordTraits {
  static std::string_view key(const Record& record) { return record.key(); }
  static void destroy(Record* record) { Record::destroy(record); }
};

class Keyspace {
 public:
  using Records = Table<Record, RecordTraits>;
  enum class Gone : std::uint8_t { expired, evicted };

  Keyspace(int number, std::uint64_t seed) : records_(seed), index_(number) {}

  int index() const { return index_; }  // as SELECT counts; swap() leaves it

  // Called for each key that leaves by itself, before it is freed.
  std::function<void(Keyspace&, std::string_view key, Gone)> on_gone;

  std::size_t size() const { return records_.size(); }
  std::size_t volatile_size() const { return expiring_.size(); }
  Records& records() { return records_; }

  // The live record of the key, null if there is none.
  Record* find(std::string_view key, std::int64_t now_ms) {
    Record* record = records_.find(key);
    if (record == nullptr) return nullptr;
    if (record->expires_at_ms != Record::never && record->expires_at_ms <= now_ms) {
      remove(*record, Gone::expired);
      return nullptr;
    }
    record->accessed = access_clock_;
    return record;
  }
  // As find(), but leaves no trace: for OBJECT, TTL, SCAN and their like.
  Record* peek(std::string_view key, std::int64_t now_ms);

  // A record for a key that has none.
  Record& insert(std::string_view key);
  bool erase(std::string_view key);
  void clear();
  void swap(Keyspace& other) noexcept;

  void set_expiry(Record& record, std::int64_t at_ms);
  void clear_expiry(Record& record) {
    if (record.expires_at_ms != Record::never) drop_expiry(record);
  }

  // Moves `record` to another key (which has no record) and keeps its expiry.
  void rename(Record& record, std::string_view key);

  // Removes keys that are due, at most `most`; true if some may be left.
  bool expire_due(std::int64_t now_ms, std::size_t most);
  std::int64_t next_expiry_ms() const { return expiring_.empty() ? Record::never : expiring_.begin()->first; }
  std::int64_t average_ttl_ms(std::int64_t now_ms) const;  // over the next few keys to expire

  void remove(Record& record, Gone why);

  // Coarse time stamped on each record that is found; eviction compares stamps. Unit: the caller's.
  void set_access_clock(std::uint32_t clock) { access_clock_ = clock; }
  std::uint32_t access_clock() const { return access_clock_; }
  template <class Random>
  Record* sample(Random&& random) const {
    return records_.sample(random);
  }
  // Of the keys that expire, one chosen by `random()`; null if there is none.
  Record* sample_volatile(std::uint64_t random) const;
  Record* first_to_expire() const { return expiring_.empty() ? nullptr : expiring_.begin()->second; }

 private:
  using Expiry = std::pair<std::int64_t, Record*>;

  void drop_expiry(Record& record);

  Records records_;
  absl::btree_set<Expiry> expiring_;
  std::uint32_t access_clock_ = 0;
  int index_;
};

}  // namespace weir::kv
