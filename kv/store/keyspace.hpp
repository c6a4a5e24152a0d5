// One database: keys, their values, and when they expire.
//
// Records that expire are also in an index ordered by time, so expiring takes no sampling: the due ones are
// the first ones.
//
// Time is a parameter (milliseconds since 1970). A key whose time has come does not exist for anyone: find()
// removes it. expire_due() removes the others. While expired keys are kept (keep_expired()) they do not exist
// either, but nothing removes them. On a replica that clients may change, nobody would ever remove what its
// own clients let expire, so that has an index of its own, and expire_due() removes it.
//
// Fields of hashes expire likewise, but find() only hides those whose time has come: there may be many. The
// hashes that have such fields are in an index of their own. Threading: the server's one thread.
#pragma once

#include <absl/container/btree_set.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "kv/store/expiring_hashes.hpp"
#include "kv/store/record.hpp"
#include "kv/store/use_frequency.hpp"
#include "kv/store/value.hpp"

namespace weir::kv {

// What a use of a key leaves in its record: the time, coarsely, or how often it is used. One clock serves all
// databases of a server; the server advances it, and each database is given a reference.
struct UseClock {
  enum class Notes : std::uint8_t { time, frequency };

  Notes notes = Notes::time;
  std::uint32_t tick = 0;    // the time as records note it; the unit is the server's
  std::uint32_t minute = 0;  // the same for frequencies
  FrequencyRules rules;
  bool rests = false;                                   // who uses keys now leaves no trace: CLIENT NO-TOUCH
  std::function<double()> chance = [] { return 0.0; };  // in [0, 1); for frequencies only

  std::uint32_t fresh() const { return notes == Notes::time ? tick : UseFrequency::fresh(minute); }
  std::uint32_t used(std::uint32_t before) const {
    if (rests) [[unlikely]]
      return before;
    return notes == Notes::time ? tick : UseFrequency::used(before, minute, rules, chance());
  }
  std::uint8_t frequency(const Record& record) const {
    return UseFrequency::counter(record.accessed, minute, rules);
  }
};

class LazyFree;
class ShownRecords;

class Keyspace {
 public:
  enum class Gone : std::uint8_t { expired, evicted };

  // `clock` and `lazy_free` outlive it. The latter gets what is removed and large.
  Keyspace(int number, const UseClock& clock, LazyFree& lazy_free)
      : clock_(&clock), lazy_free_(&lazy_free), index_(number) {}

  int index() const { return index_; }  // as SELECT counts; swap() leaves it

  // Called for each key that is removed without a command asking for it, before it is freed.
  std::function<void(Keyspace&, std::string_view key, Gone)> on_gone;

  // Called after fields of a hash were removed because their time had come. The key went with its last field.
  enum class Left : std::uint8_t { some, nothing };
  std::function<void(Keyspace&, std::string_view key, std::span<const std::string> fields, Left)>
      on_fields_gone;

  // Called for each key that is new here; empty: nobody wants to know.
  std::function<void(Keyspace&, std::string_view key)> on_added;

  std::size_t size() const { return records_.size(); }
  std::size_t volatile_size() const { return expiring_.size(); }
  std::size_t hashes_with_times() const { return hashes_.size(); }
  Records& records() { return records_; }

  // The live record of the key, null if there is none.
  Record* find(std::string_view key, std::int64_t now_ms) {
    Record* record = records_.find(key);
    if (record == nullptr) return nullptr;
    if (is_due(*record, now_ms)) {
      if (keep_ == Keep::nothing) remove(*record, Gone::expired);
      return nullptr;
    }
    if (hashes_.any()) [[unlikely]]
      hide_due_fields(*record, now_ms);
    record->accessed = clock_->used(record->accessed);
    if (snapshot_ != nullptr) [[unlikely]]
      may_change(*record);
    return record;
  }
  // As find(), but leaves no trace of use: for OBJECT, TTL, SCAN and their like.
  Record* peek(std::string_view key, std::int64_t now_ms);

  // That many keys come into an empty database: its table is made once and does not grow.
  void expect(std::size_t keys) { records_.reserve(keys); }
  // That key will be looked for soon.
  void prefetch(std::string_view key) const { records_.prefetch(key); }
  // A record for a key that has none.
  Record& insert(std::string_view key);
  // Likewise, with a value that may be a hash whose fields expire.
  Record& insert(std::string_view key, Value value);
  bool erase(std::string_view key);
  // For a record whose value will be overwritten.
  void drop_value(Record& record);
  void clear();
  void swap(Keyspace& other) noexcept;

  void set_expiry(Record& record, std::int64_t at_ms);
  void clear_expiry(Record& record) {
    if (record.expires_at_ms != Record::never) drop_expiry(record);
  }

  // Moves `record` to another key (which has no record) and keeps its expiry.
  void rename(Record& record, std::string_view key);

  // A snapshot begins (or, with null, is over): records are shown to it before they change.
  void take_part_in(ShownRecords* snapshot) { snapshot_ = snapshot; }

  // Call after fields of the hash in a record, or at a key, got times or lost them.
  void fields_changed(Record& record);
  void fields_changed(std::string_view key);
  // Removes fields of the hash at a key, whose time has come: that one, or the first ones, `most` at most.
  // With its last field the hash is gone, and the key.
  void expire_field(std::string_view key, std::string_view field, std::int64_t now_ms);
  void expire_fields(std::string_view key, std::int64_t now_ms, std::size_t most);

  // primarys: keys stay whose time the primary set, because it says when they go.
  enum class Keep : std::uint8_t { nothing, primarys, all };
  void keep_expired(Keep keep);
  // Keys that expire here although others are kept.
  std::size_t own_volatile_size() const { return own_expiring_.size(); }
  // While a log is replayed a key whose time has come still exists: if it expired, the log says so.
  void expire_nothing(bool nothing) { expires_nothing_ = nothing; }
  // Whether a key that expires at that time is gone already.
  bool is_past(std::int64_t at_ms, std::int64_t now_ms) const { return at_ms <= now_ms && !expires_nothing_; }
  // Removes keys that are due, at most `most`; true if some may be left.
  bool expire_due(std::int64_t now_ms, std::size_t most);
  // The same for fields of hashes; takes what it removes from `most`.
  bool expire_due_fields(std::int64_t now_ms, std::size_t& most);
  // When these will have something to do.
  std::int64_t next_expiry_ms() const {
    if (keep_ == Keep::all || expires_nothing_) return Record::never;
    if (keep_ == Keep::primarys) return own_expiring_.empty() ? Record::never : own_expiring_.begin()->first;
    if (!hashes_.any()) return expiring_.empty() ? Record::never : expiring_.begin()->first;
    return expiring_.empty() ? hashes_.first_ms() : std::min(expiring_.begin()->first, hashes_.first_ms());
  }
  std::int64_t average_ttl_ms(std::int64_t now_ms) const;  // over the next few keys to expire

  void remove(Record& record, Gone why);

  template <class Random>
  Record* sample(Random&& random) const {
    return records_.sample(random);
  }
  template <class Random>
  Record* sample_roughly(Random&& random) const {
    return records_.sample_roughly(random);
  }
  // A random key among those that expire, about each as likely as the others; null if there is none. Most
  // databases have many such keys. Where they are few and far between, it takes one that expires near a
  // random time, so isolated ones are found more often.
  template <class Random>
  Record* sample_volatile(Random&& random) const {
    if (expiring_.empty()) return nullptr;
    constexpr int tries = 32;
    for (int i = 0; i < tries; ++i) {
      Record* record = sample_roughly(random);
      if (record->expires_at_ms != Record::never) return record;
    }
    return near_expiry(random());
  }
  Record* first_to_expire() const { return expiring_.empty() ? nullptr : expiring_.begin()->second; }

 private:
  using Expiry = std::pair<std::int64_t, Record*>;

  bool is_due(const Record& record, std::int64_t now_ms) const {
    return record.expires_at_ms != Record::never && is_past(record.expires_at_ms, now_ms);
  }
  void drop_expiry(Record& record);
  void hide_due_fields(Record& record, std::int64_t now_ms) const;
  void expire_fields_of(Record& record, std::span<const std::string> fields);
  std::size_t expire_first_fields_of(Record& record, std::int64_t now_ms, std::size_t most);
  void may_change(Record& record);
  Record* near_expiry(std::uint64_t random) const;

  Records records_;
  absl::btree_set<Expiry> expiring_;
  absl::btree_set<Expiry> own_expiring_;  // those of them that this server's clients set while it follows
  ExpiringHashes hashes_;
  const UseClock* clock_;
  LazyFree* lazy_free_;
  ShownRecords* snapshot_ = nullptr;
  int index_;
  Keep keep_ = Keep::nothing;
  bool expires_nothing_ = false;
};

}  // namespace weir::kv
