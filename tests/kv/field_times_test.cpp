// Hashes whose fields expire, in the store: against a model, and with times that the test passes in.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "kv/rdb/dump_payload.hpp"
#include "kv/store/hash.hpp"
#include "kv/store/keyspace.hpp"
#include "kv/store/lazy_free.hpp"
#include "kv/text/heap.hpp"

namespace weir::kv {
namespace {

constexpr std::uint64_t seed = 20261127;

struct ModelField {
  std::string value;
  std::int64_t at_ms = FieldTimes::never;
};

class HashModel {
 public:
  explicit HashModel(SmallLimits limits) : limits_(limits) {}

  void step(std::mt19937_64& random) {
    const std::string field = "f" + std::to_string(random() % 40);
    const std::string value = std::to_string(random() % 1000);
    switch (random() % 8) {
      case 0:
      case 1:
        EXPECT_EQ(hash.set(field, std::string_view(value), limits_), !fields_.contains(field));
        fields_[field] = {value};
        break;
      case 2:
        EXPECT_EQ(hash.update(field, std::string_view(value), limits_), !fields_.contains(field));
        fields_[field].value = value;
        break;
      case 3:
        EXPECT_EQ(hash.erase(field), fields_.erase(field) != 0);
        break;
      case 4:
        EXPECT_EQ(hash.persist(field),
                  fields_.contains(field) &&
                      std::exchange(fields_[field].at_ms, FieldTimes::never) != FieldTimes::never);
        if (fields_[field].value.empty()) fields_.erase(field);
        break;
      case 5:
        now_ms_ += static_cast<std::int64_t>(random() % 50);
        break;
      default:
        if (!fields_.contains(field)) break;
        fields_[field].at_ms = now_ms_ + static_cast<std::int64_t>(random() % 200);
        hash.expire_at(field, fields_[field].at_ms);
    }
    if (hash.times() != nullptr) hash.times()->hide_until(now_ms_);
  }

  void expect_agrees(const Hash& other) const {
    std::map<std::string, std::string> shown;
    std::int64_t next_ms = FieldTimes::never;
    for (const auto& [name, field] : fields_) {
      const bool hidden = field.at_ms != FieldTimes::never && field.at_ms <= now_ms_;
      if (!hidden) shown[name] = field.value;
      if (field.at_ms != FieldTimes::never && (next_ms == FieldTimes::never || field.at_ms < next_ms))
        next_ms = field.at_ms;
      EXPECT_EQ(other.find(name).has_value(), !hidden) << name;
      EXPECT_EQ(other.time_of(name), field.at_ms) << name;
    }
    EXPECT_EQ(other.size(), fields_.size());
    EXPECT_EQ(other.shown(), shown.size());
    EXPECT_EQ(other.times() == nullptr ? FieldTimes::never : other.times()->next_ms(), next_ms);
    std::map<std::string, std::string> seen;
    other.for_each([&](std::string_view field, std::string_view value) { seen.emplace(field, value); });
    EXPECT_EQ(seen, shown);
    std::map<std::string, std::string> scanned;
    std::uint64_t cursor = 0;
    do {
      cursor = other.scan(
          cursor, [&](std::string_view field, std::string_view value) { scanned.emplace(field, value); });
    } while (cursor != 0);
    EXPECT_EQ(scanned, shown);
  }

  Hash hash;

 private:
  SmallLimits limits_;
  std::map<std::string, ModelField> fields_;
  std::int64_t now_ms_ = 1000;
};

class TimedHash : public ::testing::TestWithParam<std::size_t> {};

TEST_P(TimedHash, agrees_with_a_model) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 40; ++round) {
    HashModel model({GetParam(), 64});
    for (int step = 0; step < 250; ++step) {
      model.step(random);
      model.expect_agrees(model.hash);
    }
    model.expect_agrees(model.hash.copy());
    if (model.hash.size() == 0) continue;
    const auto again = rdb::restore(*rdb::unseal(rdb::dump(Value(model.hash.copy()))), {}, 1 << 20);
    ASSERT_TRUE(again) << again.error().what;
    Hash read = again->hash().copy();
    if (read.times() != nullptr) read.times()->hide_until(model.hash.times()->hidden_until_ms());
    model.expect_agrees(read);
    if (HasFailure()) return;
  }
}
// Which of them outgrow the small form: none, most, all.
INSTANTIATE_TEST_SUITE_P(Limits, TimedHash, ::testing::Values(512, 10, 0));

TEST(TimedHashMemory, is_what_it_was_without_times) {
  static_assert(sizeof(Hash) == 24);
  const std::size_t before = used_memory();
  Hash hash;
  for (const char* field : {"a", "b", "c", "d", "e"}) hash.set(field, std::string_view("value"), {512, 64});
  const std::size_t without = used_memory();
  EXPECT_LE(without - before, 64u);
  hash.expire_at("a", 1);
  EXPECT_LE(used_memory() - without, 320u);
  hash.persist("a");
  EXPECT_EQ(used_memory(), without);
}

TEST(TimedHashMemory, of_many_times_is_what_the_decision_says) {
  constexpr std::size_t fields = 10'000;
  Hash hash;
  for (std::size_t i = 0; i < fields; ++i)
    hash.set("field" + std::to_string(i), std::string_view("value"), {512, 64});
  const std::size_t without = used_memory();
  for (std::size_t i = 0; i < fields; ++i)
    hash.expire_at("field" + std::to_string(i), static_cast<std::int64_t>(i * 7919 % fields));
  EXPECT_LE((used_memory() - without) / fields, 80u);
}

class FieldExpiry : public ::testing::Test {
 protected:
  UseClock clock;
  LazyFree lazy_free;
  Keyspace db{0, clock, lazy_free};
  std::vector<std::string> gone;  // keys with a field each, "!" behind the last of a hash

  void SetUp() override {
    db.on_fields_gone = [this](Keyspace&, std::string_view key, std::span<const std::string> fields,
                               Keyspace::Left left) {
      for (const std::string& field : fields) gone.push_back(std::string(key) + '.' + field);
      if (left == Keyspace::Left::nothing) gone.back() += '!';
    };
  }
  // A hash with one field that stays, or none, and those that expire.
  void add(const std::string& key, bool stays,
           const std::vector<std::pair<std::string, std::int64_t>>& fields) {
    Hash hash;
    if (stays) hash.set("stays", std::string_view("1"), {512, 64});
    for (const auto& [field, at_ms] : fields) {
      hash.set(field, std::string_view("1"), {512, 64});
      hash.expire_at(field, at_ms);
    }
    db.insert(key, Value(std::move(hash)));
  }
  std::size_t expire(std::int64_t now_ms, std::size_t most) {
    const std::size_t before = most;
    db.expire_due_fields(now_ms, most);
    return before - most;
  }
};

TEST_F(FieldExpiry, field_is_seen_until_its_time_and_not_at_it) {
  add("h", true, {{"a", 1000}});
  EXPECT_TRUE(db.find("h", 999)->value.hash().find("a"));
  EXPECT_FALSE(db.find("h", 1000)->value.hash().find("a"));
  EXPECT_FALSE(db.peek("h", 1000)->value.hash().find("a"));
  EXPECT_EQ(db.find("h", 1000)->value.hash().size(), 2u) << "a look-up removes nothing";
  EXPECT_TRUE(gone.empty());
}

TEST_F(FieldExpiry, due_fields_go_in_order_of_their_time_and_no_more_than_asked_for) {
  add("h", true, {{"a", 300}, {"b", 100}});
  add("i", false, {{"c", 200}, {"d", 400}});
  EXPECT_EQ(db.next_expiry_ms(), 100);
  EXPECT_EQ(expire(350, 1), 1u);
  EXPECT_EQ(gone, std::vector<std::string>{"h.b"});
  EXPECT_EQ(expire(350, 10), 2u);
  EXPECT_EQ(gone, (std::vector<std::string>{"h.b", "i.c", "h.a"}));
  EXPECT_EQ(db.next_expiry_ms(), 400);
  EXPECT_EQ(db.hashes_with_times(), 1u);
  expire(400, 10);
  EXPECT_EQ(gone.back(), "i.d!");
  EXPECT_EQ(db.find("i", 0), nullptr) << "the last field takes the key along";
  EXPECT_NE(db.find("h", 0), nullptr);
  EXPECT_EQ(db.hashes_with_times(), 0u);
}

TEST_F(FieldExpiry, huge_hash_takes_many_small_steps_and_shows_nothing_from_the_first_on) {
  std::vector<std::pair<std::string, std::int64_t>> fields;
  for (int i = 0; i < 100'000; ++i) fields.emplace_back("f" + std::to_string(i), 100 + i % 7);
  add("h", true, fields);
  EXPECT_EQ(db.find("h", 1000)->value.hash().shown(), 1u);
  std::size_t most = 500;
  EXPECT_TRUE(db.expire_due_fields(1000, most)) << "more is left";
  EXPECT_EQ(most, 0u);
  EXPECT_EQ(gone.size(), 500u);
  EXPECT_EQ(db.find("h", 1000)->value.hash().size(), 99'501u);
}

TEST_F(FieldExpiry, moves_with_the_value_and_ends_with_it) {
  const auto expect_gone = [this](const std::string& last, std::size_t hashes) {
    EXPECT_EQ(db.hashes_with_times(), hashes);
    expire(100, 10);
    EXPECT_EQ(gone, last.empty() ? std::vector<std::string>() : std::vector<std::string>{last});
    gone.clear();
    db.clear();
    EXPECT_EQ(db.hashes_with_times(), 0u);
  };
  add("h", true, {{"a", 100}});
  db.rename(*db.find("h", 0), "i");
  expect_gone("i.a", 1);
  add("h", true, {{"a", 100}});
  db.erase("h");
  expect_gone("", 0);
  add("h", true, {{"a", 100}});
  db.drop_value(*db.find("h", 0));
  db.find("h", 0)->value.assign("text");
  expect_gone("", 0);
  Keyspace other(1, clock, lazy_free);
  add("h", true, {{"a", 100}});
  db.swap(other);
  EXPECT_EQ(other.hashes_with_times(), 1u);
  expect_gone("", 0);
}

TEST_F(FieldExpiry, rests_while_nothing_expires_and_while_expired_keys_are_kept) {
  add("h", true, {{"a", 100}});
  db.expire_nothing(true);
  EXPECT_TRUE(db.find("h", 200)->value.hash().find("a"));
  EXPECT_EQ(expire(200, 10), 0u);
  EXPECT_EQ(db.next_expiry_ms(), Record::never);
  db.expire_nothing(false);
  db.keep_expired(Keyspace::Keep::all);
  EXPECT_FALSE(db.find("h", 200)->value.hash().find("a"));
  db.expire_field("h", "a", 200);
  db.expire_fields("h", 200, 10);
  EXPECT_EQ(expire(200, 10), 0u);
  EXPECT_EQ(db.find("h", 200)->value.hash().size(), 2u);
  db.keep_expired(Keyspace::Keep::nothing);
  EXPECT_EQ(expire(200, 10), 1u);
}

TEST_F(FieldExpiry, one_field_is_removed_if_its_time_has_come) {
  add("h", false, {{"a", 100}, {"b", 200}});
  db.expire_field("h", "b", 150);
  EXPECT_TRUE(gone.empty());
  db.expire_field("h", "a", 150);
  EXPECT_EQ(gone, std::vector<std::string>{"h.a"});
  db.expire_field("h", "b", 250);
  EXPECT_EQ(gone.back(), "h.b!");
  EXPECT_EQ(db.size(), 0u);
}

TEST(TimedHashFreed, in_steps_leaves_nothing) {
  const std::size_t before = used_memory();
  {
    LazyFree lazy_free;
    Hash hash;
    for (int i = 0; i < 10'000; ++i) {
      const std::string field = "f" + std::to_string(i);
      hash.set(field, std::string_view("1"), {512, 64});
      hash.expire_at(field, i);
    }
    Value value(std::move(hash));
    lazy_free.take_if_large(value);
    int steps = 0;
    for (; lazy_free.any(); ++steps) lazy_free.free_some(100);
    EXPECT_GE(steps, 200);
  }
  EXPECT_LE(used_memory(), before + 4096);
}

}  // namespace
}  // namespace weir::kv
