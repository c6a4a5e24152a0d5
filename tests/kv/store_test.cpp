// The store against simple models, with random operations from a printed seed.
#include <absl/hash/hash.h>
#include <absl/strings/string_view.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "kv/store/hash.hpp"
#include "kv/store/keyspace.hpp"
#include "kv/store/lazy_free.hpp"
#include "kv/store/set.hpp"

namespace weir::kv {
namespace {

std::uint64_t seed() {
  static const std::uint64_t chosen = 20240607;
  ::testing::Test::RecordProperty("seed", std::to_string(chosen));
  return chosen;
}

using MemberTable = Table<Member, MemberTraits>;

TEST(Table, holds_what_a_map_holds) {
  std::mt19937_64 random(seed());
  MemberTable table;
  std::set<std::string> model;
  // Grows to thousands, shrinks to nothing, twice.
  for (int phase = 0; phase < 4; ++phase) {
    for (int i = 0; i < 8000; ++i) {
      const std::string key = std::to_string(random() % 6000);
      const bool add = random() % 10 < (phase % 2 == 0 ? 8u : 1u);
      if (add && model.insert(key).second) {
        ASSERT_EQ(table.find(key), nullptr);
        table.insert(Member::make(key));
      } else if (!add) {
        ASSERT_EQ(table.erase(key), model.erase(key) == 1);
      }
      ASSERT_EQ(table.size(), model.size());
    }
    std::set<std::string> walked;
    table.for_each([&](const Member& member) { return walked.emplace(member.text()).second; });
    ASSERT_EQ(walked, model);
    for (const std::string& key : model) ASSERT_NE(table.find(key), nullptr) << key;
  }
}

TEST(Table, reserved_table_does_not_grow_on_the_way) {
  MemberTable table;
  table.reserve(5000);
  const std::size_t buckets = table.bucket_count();
  EXPECT_EQ(buckets, 1024u);
  for (int i = 0; i < 5000; ++i) table.insert(Member::make(std::to_string(i)));
  EXPECT_EQ(table.bucket_count(), buckets);
  table.reserve(1'000'000);  // it isn't empty any more
  EXPECT_EQ(table.bucket_count(), buckets);
  for (int i = 0; i < 5000; ++i) ASSERT_NE(table.find(std::to_string(i)), nullptr);
}

// The statistic of Pearson's test has the mean n - 1 and the variance 2 (n - 1); six deviations above it are
// no chance. Choosing a bucket first and then one of its nodes comes to several thousand here.
TEST(Table, sample_is_as_likely_to_be_any_of_its_nodes) {
  std::mt19937_64 random(seed());
  constexpr std::size_t nodes = 300;
  constexpr std::size_t draws = 300;  // a node
  MemberTable table;
  std::map<std::string_view, std::size_t> drawn;
  for (std::size_t i = 0; i < nodes; ++i) {
    Member* member = Member::make("member" + std::to_string(i));
    table.insert(member);
    drawn[member->text()] = 0;
  }
  for (std::size_t i = 0; i < nodes * draws; ++i) ++drawn[table.sample(random)->text()];
  double statistic = 0;
  for (const auto& [text, times] : drawn) {
    const double off = static_cast<double>(times) - static_cast<double>(draws);
    statistic += off * off / static_cast<double>(draws);
  }
  EXPECT_LT(statistic, (nodes - 1) + 6 * std::sqrt(2.0 * (nodes - 1)));
}

// Sixteen bytes, as many different ones as wanted, which libstdc++'s std::hash (a Murmur hash without a
// secret) takes to the same value: its steps can be undone, so the second half makes up for whatever the
// first did.
std::string chosen_for_std_hash(std::uint64_t first) {
  constexpr std::uint64_t factor = 0xc6a4a7935bd1e995u;
  constexpr std::uint64_t seed = 0xc70f6907u;
  constexpr std::uint64_t wanted = 0x1234567890abcdefu;
  std::uint64_t inverse = factor;  // Newton's steps, each of which doubles the correct bits
  for (int i = 0; i < 5; ++i) inverse *= 2 - factor * inverse;
  const auto mixed = [](std::uint64_t v) { return v ^ v >> 47; };  // its own inverse for 47 >= 32
  const std::uint64_t after_first = ((seed ^ 16 * factor) ^ mixed(first * factor) * factor) * factor;
  const std::uint64_t second = mixed((after_first ^ wanted) * inverse) * inverse;
  std::string text(16, '\0');
  std::memcpy(text.data(), &first, 8);
  std::memcpy(text.data() + 8, &second, 8);
  return text;
}

// The table's old hash was Abseil's with a random seed mixed in beside it. Its salt is public, and a first
// word equal to it makes what was computed before, seed and all, a factor of zero.
std::string chosen_for_abseils_hash(std::uint64_t number) {
  constexpr std::uint64_t salt = 0x13198a2e03707344u;
  std::string text(32, '\0');
  std::memcpy(text.data(), &salt, 8);
  std::memcpy(text.data() + 8, &number, 8);
  std::memcpy(text.data() + 16, "0123456789abcdef", 16);
  return text;
}

// One step of the scan is one chain.
std::size_t longest_chain(const MemberTable& table) {
  std::size_t longest = 0;
  std::uint64_t cursor = 0;
  do {
    std::size_t chain = 0;
    cursor = table.scan(cursor, [&chain](const Member&) { ++chain; });
    longest = std::max(longest, chain);
  } while (cursor != 0);
  return longest;
}

struct Collisions {
  const char* name;
  std::string (*choose)(std::uint64_t);
  std::size_t (*hash)(std::string_view);
};

class ChosenKeys : public ::testing::TestWithParam<Collisions> {};

TEST_P(ChosenKeys, do_not_flood_a_bucket) {
  constexpr std::uint64_t keys = 20000;
  MemberTable table;
  const std::size_t same = GetParam().hash(GetParam().choose(0));
  for (std::uint64_t i = 0; i < keys; ++i) {
    const std::string key = GetParam().choose(i);
    ASSERT_EQ(GetParam().hash(key), same) << "these are no collisions any more: choose others";
    table.insert(Member::make(key));
  }
  // Of random keys, five a bucket on average, one in 10^15 buckets holds so many.
  EXPECT_LT(longest_chain(table), 40u);
}

INSTANTIATE_TEST_SUITE_P(
    Table, ChosenKeys,
    ::testing::Values(Collisions{"standard_hash", chosen_for_std_hash,
                                 [](std::string_view text) { return std::hash<std::string_view>{}(text); }},
                      Collisions{"abseils_hash_whatever_the_seed", chosen_for_abseils_hash,
                                 [](std::string_view text) {
                                   const std::uint64_t seed = 20240607;  // any
                                   return absl::HashOf(seed, absl::string_view(text.data(), text.size()));
                                 }}),
    [](const auto& row) { return std::string(row.param.name); });

// The promise of SCAN: what is there from beginning to end is returned, however the table changes between the
// calls.
TEST(Table, scan_returns_whatever_stays_while_the_table_grows_and_shrinks) {
  std::mt19937_64 random(seed());
  for (int round = 0; round < 4; ++round) {
    MemberTable table;
    std::set<std::string> stays;
    for (int i = 0; i < 300; ++i) {
      stays.insert("stay" + std::to_string(i));
      table.insert(Member::make("stay" + std::to_string(i)));
    }
    std::set<std::string> comes_and_goes;
    std::set<std::string> returned;
    std::uint64_t cursor = 0;
    int calls = 0;
    do {
      cursor = table.scan(cursor, [&](const Member& member) { returned.emplace(member.text()); });
      // Between calls the table becomes many times larger, or small again.
      const std::size_t wanted = random() % 2 == 0 ? random() % 2000 : 0;
      while (comes_and_goes.size() < wanted) {
        const std::string key = "x" + std::to_string(random());
        if (comes_and_goes.insert(key).second) table.insert(Member::make(key));
      }
      while (comes_and_goes.size() > wanted) {
        table.erase(*comes_and_goes.begin());
        comes_and_goes.erase(comes_and_goes.begin());
      }
      ASSERT_LT(++calls, 100000) << "the scan does not end";
    } while (cursor != 0);
    for (const std::string& key : stays) ASSERT_TRUE(returned.contains(key)) << key << " in round " << round;
  }
}

TEST(Hash, keeps_the_order_of_arrival_while_small_and_everything_when_it_grows) {
  Hash hash;
  constexpr SmallLimits limits{4, 8};
  for (const char* field : {"d", "b", "a"}) EXPECT_TRUE(hash.set(field, Bytes("1"), limits));
  EXPECT_FALSE(hash.set("b", Bytes("2"), limits));
  std::string order;
  hash.for_each([&](std::string_view field, std::string_view value) {
    order += std::string(field) + std::string(value);
  });
  EXPECT_EQ(order, "d1b2a1");
  hash.set("long", Bytes("123456789"), limits);
  EXPECT_FALSE(hash.small());
  EXPECT_EQ(hash.size(), 4u);
  EXPECT_EQ(hash.find("b")->view(), "2");
  EXPECT_TRUE(hash.erase("b"));
  EXPECT_FALSE(hash.find("b"));
}

TEST(Set, of_integers_is_sorted_until_something_else_comes) {
  Set set;
  for (const char* member : {"30", "-5", "7"}) EXPECT_TRUE(set.insert(member, {}));
  EXPECT_FALSE(set.insert("7", {}));
  std::vector<std::string> members;
  set.for_each([&](std::string_view member) { return members.emplace_back(member), true; });
  EXPECT_EQ(members, (std::vector<std::string>{"-5", "7", "30"}));
  EXPECT_FALSE(set.contains("07"));
  EXPECT_TRUE(set.insert("07", {}));
  EXPECT_EQ(set.form(), Set::Form::packed);
  EXPECT_TRUE(set.contains("-5"));
  EXPECT_EQ(set.size(), 4u);
}

// As SINTER of a set with itself does, whatever the table is doing meanwhile.
TEST(Set, shows_each_member_once_while_members_are_looked_up) {
  Set set;
  for (int i = 0; i < 700; ++i) {
    set.insert("member" + std::to_string(i), {});
    std::set<std::string> seen;
    set.for_each([&](std::string_view member) {
      EXPECT_TRUE(set.contains(member));
      EXPECT_TRUE(seen.emplace(member).second) << member << " twice";
      return seen.size() <= set.size();
    });
    ASSERT_EQ(seen.size(), set.size());
  }
}

class Expiring : public ::testing::Test {
 protected:
  UseClock clock;
  LazyFree lazy_free;
  Keyspace db{0, clock, lazy_free};
  std::vector<std::string> gone;

  void SetUp() override {
    db.on_gone = [this](Keyspace&, std::string_view key, Keyspace::Gone) { gone.emplace_back(key); };
  }
  void add(std::string_view key, std::int64_t at_ms) { db.set_expiry(db.insert(key), at_ms); }
};

TEST_F(Expiring, key_is_there_until_its_time_and_not_at_it) {
  add("a", 1000);
  EXPECT_NE(db.find("a", 999), nullptr);
  EXPECT_EQ(db.find("a", 1000), nullptr);
  EXPECT_EQ(gone, std::vector<std::string>{"a"});
  EXPECT_EQ(db.size(), 0u);
}

TEST_F(Expiring, due_keys_go_in_order_of_their_time_and_no_more_than_asked_for) {
  add("c", 300);
  add("a", 100);
  add("b", 200);
  db.insert("stays");
  EXPECT_EQ(db.next_expiry_ms(), 100);
  EXPECT_TRUE(db.expire_due(250, 1));
  EXPECT_EQ(gone, std::vector<std::string>{"a"});
  EXPECT_FALSE(db.expire_due(250, 10));
  EXPECT_EQ(gone, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(db.size(), 2u);
}

TEST_F(Expiring, new_time_replaces_the_old_one_and_clearing_removes_it) {
  add("a", 100);
  Record* record = db.find("a", 0);
  db.set_expiry(*record, 500);
  EXPECT_FALSE(db.expire_due(400, 10));
  db.clear_expiry(*record);
  EXPECT_EQ(db.volatile_size(), 0u);
  EXPECT_NE(db.find("a", 10000), nullptr);
}

TEST_F(Expiring, renamed_key_keeps_its_time) {
  add("a", 100);
  db.rename(*db.find("a", 0), "b");
  EXPECT_EQ(db.find("a", 0), nullptr);
  EXPECT_EQ(db.find("b", 99)->expires_at_ms, 100);
  EXPECT_FALSE(db.expire_due(100, 10));
  EXPECT_EQ(gone, std::vector<std::string>{"b"});
}

// Of how many keys those that expire are drawn, all of them about as often.
class DrawnByExpiry : public Expiring, public ::testing::WithParamInterface<int> {};
TEST_P(DrawnByExpiry, are_those_that_expire_late_as_well_as_those_that_expire_soon) {
  constexpr int expiring = 1000;
  for (int i = 0; i < expiring; ++i) add("k" + std::to_string(i), 1000 * (i + 1));
  for (int i = 0; i < GetParam(); ++i) db.insert("stays" + std::to_string(i));
  std::mt19937_64 random(seed());
  constexpr int parts = 10;
  constexpr int draws = 10'000;
  std::array<int, parts> drawn{};
  for (int i = 0; i < draws; ++i) {
    const Record* record = db.sample_volatile(random);
    ASSERT_NE(record->expires_at_ms, Record::never);
    ++drawn[static_cast<std::size_t>((record->expires_at_ms - 1) / (1000 * expiring / parts))];
  }
  for (const int count : drawn) EXPECT_NEAR(count, draws / parts, draws / parts / 4);
}
INSTANTIATE_TEST_SUITE_P(Others, DrawnByExpiry, ::testing::Values(0, 1000, 100'000));

}  // namespace
}  // namespace weir::kv
