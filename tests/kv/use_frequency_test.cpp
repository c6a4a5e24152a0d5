// The use frequency of keys: the counter with a given chance and minute, and its effect on eviction.
#include <gtest/gtest.h>

#include <random>

#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

constexpr FrequencyRules usual;

std::uint8_t counter_after(std::uint32_t mark, std::uint32_t minute = 0) {
  return UseFrequency::counter(mark, minute, usual);
}

std::uint32_t used_until(std::uint8_t counter) {
  std::uint32_t mark = UseFrequency::fresh(0);
  while (counter_after(mark) < counter) mark = UseFrequency::used(mark, 0, usual, 0.0);
  return mark;
}

TEST(UseFrequency, of_a_new_key_is_five) { EXPECT_EQ(counter_after(UseFrequency::fresh(0)), 5); }

TEST(UseFrequency, grows_by_one_or_not_and_ends_at_255) {
  std::uint32_t mark = UseFrequency::fresh(0);
  for (int i = 0; i < 300; ++i) mark = UseFrequency::used(mark, 0, usual, 0.0);
  EXPECT_EQ(counter_after(mark), 255);
}

TEST(UseFrequency, grows_when_chance_is_below_one_in_height_times_factor_plus_one) {
  struct Row {
    std::uint8_t counter;
    double least_that_fails;
  };
  // Up to a new key's counter every use counts.
  const Row table[] = {{5, 1.0}, {6, 1.0 / 11}, {15, 1.0 / 101}, {105, 1.0 / 1001}, {254, 1.0 / 2491}};
  for (const auto& [counter, limit] : table) {
    const std::uint32_t mark = used_until(counter);
    EXPECT_EQ(counter_after(UseFrequency::used(mark, 0, usual, limit * 0.999)), counter + 1) << int{counter};
    if (limit < 1.0) {
      EXPECT_EQ(counter_after(UseFrequency::used(mark, 0, usual, limit)), counter) << int{counter};
    }
  }
}

TEST(UseFrequency, decays_by_one_each_period) {
  struct Row {
    std::uint8_t counter;
    std::uint32_t decay_minutes, passed;
    int left;
  };
  const Row table[] = {{5, 1, 0, 5},      {5, 1, 3, 2},      {5, 1, 5, 0},      {5, 1, 1000000, 0},
                       {100, 10, 9, 100}, {100, 10, 10, 99}, {100, 10, 999, 1}, {100, 0, 1000000, 100}};
  for (const Row& row : table) {
    const std::uint32_t mark = used_until(row.counter);
    EXPECT_EQ(UseFrequency::counter(mark, row.passed, {10, row.decay_minutes}), row.left)
        << int{row.counter} << " after " << row.passed;
  }
}

TEST(UseFrequency, is_counted_from_what_has_decayed) {
  const std::uint32_t mark = UseFrequency::used(used_until(100), 98, usual, 0.0);
  EXPECT_EQ(counter_after(mark, 98), 3);
  EXPECT_EQ(counter_after(mark, 99), 2) << "the use began a new period";
}

TEST(UseFrequency, survives_the_end_of_the_minutes) {
  constexpr std::uint32_t last = 0xffffff;
  const std::uint32_t mark = UseFrequency::fresh(last);
  EXPECT_EQ(counter_after(mark, last), 5);
  EXPECT_EQ(counter_after(mark, last + 2), 3);
}

// Redis's documentation gives this table for the default factor.
TEST(UseFrequency, tells_a_hundred_uses_from_a_million) {
  std::mt19937_64 random(4711);
  std::uniform_real_distribution<double> chance(0, 1);
  std::uint32_t mark = UseFrequency::fresh(0);
  int uses = 0;
  auto counter_at = [&](int wanted) {
    for (; uses < wanted; ++uses) mark = UseFrequency::used(mark, 0, usual, chance(random));
    return int{counter_after(mark)};
  };
  // One run of a random process: accept a deviation of a quarter.
  EXPECT_NEAR(counter_at(100), 10, 3);
  EXPECT_NEAR(counter_at(1'000), 18, 5);
  EXPECT_NEAR(counter_at(100'000), 142, 36);
  EXPECT_EQ(counter_at(1'000'000), 255);
}

TEST(UseFrequency, is_noted_by_those_who_use_and_not_by_those_who_look) {
  UseClock clock;
  clock.notes = UseClock::Notes::frequency;
  LazyFree lazy_free;
  Keyspace db(0, clock, lazy_free);
  db.insert("k");
  db.find("k", 0);
  db.find("k", 0);
  EXPECT_EQ(clock.frequency(*db.peek("k", 0)), 7);
  EXPECT_EQ(clock.frequency(*db.peek("k", 0)), 7);
  db.rename(*db.peek("k", 0), "other");
  EXPECT_EQ(clock.frequency(*db.peek("other", 0)), 7) << "a renamed key keeps it";
  clock.minute = 4;
  EXPECT_EQ(clock.frequency(*db.peek("other", 0)), 3);
}

TEST(ObjectFreq, follows_use_and_the_servers_clock) {
  RunningServer server;
  WireClient a = server.connect();
  a.call({"CONFIG", "SET", "maxmemory-policy", "allkeys-lfu"});
  a.call({"SET", "k", "v"});
  EXPECT_EQ(a.call({"OBJECT", "FREQ", "k"}), ":5\r\n");
  a.call({"GET", "k"});
  EXPECT_EQ(a.call({"OBJECT", "FREQ", "k"}), ":6\r\n");
  server.advance_ms(3 * 60'000);
  EXPECT_EQ(a.call({"OBJECT", "FREQ", "k"}), ":3\r\n");
  a.call({"CONFIG", "SET", "lfu-decay-time", "0"});
  EXPECT_EQ(a.call({"OBJECT", "FREQ", "k"}), ":6\r\n");
}

class LfuEviction : public ::testing::TestWithParam<const char*> {};

// The frequently used keys are those not used lately: by age they would go first.
TEST_P(LfuEviction, keeps_what_is_used_often_although_not_lately) {
  RunningServer server;
  WireClient a = server.connect();
  a.call({"CONFIG", "SET", "maxmemory-policy", GetParam(), "maxmemory-samples", "10"});
  const std::string value(20000, 'x');
  const auto name = [](int i) { return "k" + std::to_string(i); };
  for (int i = 0; i < 300; ++i) a.call({"SET", name(i), value, "EX", "100000"});
  for (int use = 0; use < 200; ++use) {
    for (int i = 0; i < 10; ++i) a.call({"STRLEN", name(i)});
  }
  server.advance_ms(1000);
  for (int i = 10; i < 300; ++i) a.call({"STRLEN", name(i)});
  const std::string used = a.call({"INFO", "memory"});
  const long bytes = std::stol(used.substr(used.find("used_memory:") + 12));
  a.call({"CONFIG", "SET", "maxmemory", std::to_string(bytes - 2'000'000)});
  for (int i = 0; i < 20; ++i) ASSERT_EQ(a.call({"SET", "n" + std::to_string(i), value}), "+OK\r\n");
  EXPECT_LT(server.run([](Server& s) { return s.databases[0]->size(); }), 250u);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(a.call({"EXISTS", name(i)}), ":1\r\n") << name(i);
}
INSTANTIATE_TEST_SUITE_P(
    Policies, LfuEviction, ::testing::Values("allkeys-lfu", "volatile-lfu"), [](const auto& instance) {
      return std::string(instance.param).substr(0, std::string(instance.param).find('-'));
    });

}  // namespace
}  // namespace weir::kv::testing
