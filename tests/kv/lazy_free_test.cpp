// Large values and whole databases are freed a little at a time, and in the end nothing of them is left.
#include "kv/store/lazy_free.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kv/store/hash.hpp"
#include "kv/store/list.hpp"
#include "kv/store/set.hpp"
#include "kv/store/zset.hpp"
#include "kv/text/heap.hpp"
#include "tests/kv/running_server.hpp"
#include "tests/kv/wire_client.hpp"

namespace weir::kv::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t many = 10'000;
constexpr SmallLimits limits{128, 64};

Value list_of(std::size_t elements) {
  // A node holds some, and is freed whole.
  List list;
  for (std::size_t i = 0; i < elements; ++i) list.push(End::right, std::string_view(std::string(200, 'x')));
  return Value(std::move(list));
}
Value set_of(std::size_t elements) {
  Set set;
  for (std::size_t i = 0; i < elements; ++i) set.insert("member:" + std::to_string(i), {});
  return Value(std::move(set));
}
Value hash_of(std::size_t elements) {
  Hash hash;
  for (std::size_t i = 0; i < elements; ++i)
    hash.set("field:" + std::to_string(i), std::string_view("a value that is not small"), limits);
  return Value(std::move(hash));
}
Value zset_of(std::size_t elements) {
  SortedSet zset;
  for (std::size_t i = 0; i < elements; ++i)
    zset.insert("member:" + std::to_string(i), static_cast<double>(i), limits);
  return Value(std::move(zset));
}

struct Kind {
  const char* name;
  Value (*make)(std::size_t elements);
};

class LazyFreeOf : public ::testing::TestWithParam<Kind> {
 protected:
  LazyFree lazy_free;

  int steps_of(std::size_t elements) {
    int steps = 0;
    for (; lazy_free.any(); ++steps) lazy_free.free_some(elements);
    return steps;
  }
};

TEST_P(LazyFreeOf, large_values_takes_many_steps_and_leaves_nothing) {
  lazy_free.take_if_large(*std::make_unique<Value>(GetParam().make(many)));
  ASSERT_TRUE(lazy_free.any());
  steps_of(100);
  const std::size_t before = used_memory();
  {
    Value value = GetParam().make(many);
    lazy_free.take_if_large(value);
    EXPECT_EQ(value.type(), Type::string) << "it was taken";
  }
  EXPECT_GT(used_memory(), before + many * 8);
  const int steps = steps_of(100);
  EXPECT_GE(steps, 30);
  EXPECT_LE(steps, 200);
  EXPECT_LE(used_memory(), before + 4096);
}

TEST_P(LazyFreeOf, small_values_is_left_to_the_caller) {
  Value value = GetParam().make(LazyFree::large);
  lazy_free.take_if_large(value);
  EXPECT_FALSE(lazy_free.any());
  EXPECT_EQ(value.elements(), LazyFree::large);
}

TEST_P(LazyFreeOf, values_that_are_half_freed_when_it_ends_leaves_nothing) {
  const std::size_t before = used_memory();
  {
    LazyFree ends;
    Value value = GetParam().make(many);
    ends.take_if_large(value);
    ends.free_some(many / 2);
    EXPECT_TRUE(ends.any());
  }
  EXPECT_LE(used_memory(), before + 4096);
}

INSTANTIATE_TEST_SUITE_P(Types, LazyFreeOf,
                         ::testing::Values(Kind{"lists", list_of}, Kind{"sets", set_of},
                                           Kind{"hashes", hash_of}, Kind{"sorted_sets", zset_of}),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(LazyFreeOfADatabase, takes_its_large_values_along_whatever_the_table_was_doing) {
  UseClock clock;
  for (const std::size_t keys : {1, 81, 1000, 1281, 10'000}) {  // 81, 1281: the table has begun to grow
    LazyFree lazy_free;
    Keyspace db{0, clock, lazy_free};
    for (std::size_t i = 0; i < keys; ++i) db.insert("key:" + std::to_string(i));
    db.set_expiry(db.insert("large"), 100);
    db.find("large", 0)->value = set_of(many);
    db.clear();
    EXPECT_EQ(db.size(), 0u);
    EXPECT_EQ(db.volatile_size(), 0u);
    EXPECT_EQ(db.find("large", 0), nullptr);
    db.insert("large");
    std::size_t most = 0;
    while (lazy_free.any()) {
      most = std::max(most, lazy_free.size());
      lazy_free.free_some(50);
    }
    EXPECT_EQ(lazy_free.freed(), 2u) << "the database and the set";
    EXPECT_NE(db.find("large", 0), nullptr);
  }
}

class Removing : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(Removing, a_large_value_answers_at_once_and_frees_it_all) {
  RunningServer server;
  WireClient a = server.connect();
  const std::size_t before = server.run([](Server& s) {
    s.databases[0]->insert("warm").value = zset_of(many);
    s.databases[0]->erase("warm");
    while (s.lazy_free.any()) s.lazy_free.free_some(many);
    return used_memory();
  });
  server.run([](Server& s) { s.databases[0]->insert("k").value = zset_of(20 * many); });
  a.call(GetParam());
  EXPECT_THAT(a.call({"INFO", "memory"}), HasSubstr("lazyfree_pending_objects:1\r\n"));
  while (server.run([](Server& s) { return s.lazy_free.any(); })) {
  }
  EXPECT_THAT(a.call({"INFO", "memory"}), HasSubstr("lazyfreed_objects:"));
  EXPECT_LE(server.run([](Server&) { return used_memory(); }), before + 200'000);
}
INSTANTIATE_TEST_SUITE_P(By, Removing,
                         ::testing::Values(std::vector<std::string>{"DEL", "k"},
                                           std::vector<std::string>{"UNLINK", "k"},
                                           std::vector<std::string>{"FLUSHALL"},
                                           std::vector<std::string>{"FLUSHDB", "ASYNC"},
                                           std::vector<std::string>{"SET", "k", "v"},
                                           std::vector<std::string>{"EXPIRE", "k", "-1"},
                                           std::vector<std::string>{"SUNIONSTORE", "k", "none"}),
                         [](const auto& instance) { return instance.param[0]; });

// Beside that, what stays.
TEST(Trimming, a_long_list_answers_at_once_and_frees_the_rest) {
  RunningServer server;
  WireClient a = server.connect();
  server.run([](Server& s) {
    List list;
    for (std::size_t i = 0; i < 20 * many; ++i) list.push(End::right, std::string_view(std::to_string(i)));
    s.databases[0]->insert("k").value = Value(std::move(list));
  });
  // Together, so that nothing is freed in between.
  a.call({"MULTI"});
  a.call({"LTRIM", "k", "-2", "-1"});
  a.call({"INFO", "memory"});
  EXPECT_THAT(a.call({"EXEC"}), HasSubstr("lazyfree_pending_objects:1\r\n"));
  EXPECT_EQ(a.call({"LRANGE", "k", "0", "-1"}), "*2\r\n$6\r\n199998\r\n$6\r\n199999\r\n");
  EXPECT_EQ(a.call({"LTRIM", "k", "5", "9"}), "+OK\r\n");
  EXPECT_EQ(a.call({"EXISTS", "k"}), ":0\r\n");
}

class FreeingAtOnce : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(FreeingAtOnce, answers_when_all_is_freed) {
  RunningServer server;
  WireClient a = server.connect();
  server.run([](Server& s) {
    s.databases[0]->insert("gone").value = zset_of(20 * many);
    s.databases[0]->erase("gone");
    s.databases[0]->insert("k").value = set_of(20 * many);
  });
  a.send(encode(GetParam()) + encode({"INFO", "memory"}));
  a.reply();
  EXPECT_THAT(a.reply(), HasSubstr("lazyfree_pending_objects:0\r\n"));
}
INSTANTIATE_TEST_SUITE_P(By, FreeingAtOnce,
                         ::testing::Values(std::vector<std::string>{"FLUSHALL", "SYNC"},
                                           std::vector<std::string>{"FLUSHDB", "sync"},
                                           std::vector<std::string>{"MEMORY", "PURGE"}),
                         [](const auto& instance) { return instance.param[0]; });

TEST(MaxMemory, evicts_nothing_as_long_as_there_is_something_to_free) {
  RunningServer server;
  WireClient a = server.connect();
  a.call({"SET", "k", "1"});
  a.call({"CONFIG", "SET", "maxmemory-policy", "allkeys-random"});
  server.run([](Server& s) {
    s.settings.maxmemory = static_cast<std::int64_t>(used_memory()) + 1'000'000;
    s.databases[0]->insert("large").value = set_of(10 * many);
    s.databases[0]->erase("large");
    ASSERT_TRUE(s.lazy_free.any());
    ASSERT_GT(used_memory(), static_cast<std::size_t>(s.settings.maxmemory));
    EXPECT_TRUE(s.make_room());
  });
  EXPECT_EQ(a.call({"GET", "k"}), "$1\r\n1\r\n");
  EXPECT_THAT(a.call({"INFO", "stats"}), HasSubstr("evicted_keys:0\r\n"));
}

TEST(Expiry, of_many_keys_at_once_leaves_time_for_others_and_goes_on) {
  RunningServer server;
  WireClient a = server.connect();
  server.run([](Server& s) {
    for (int db : {0, 1})
      for (int i = 0; i < 1000; ++i)
        s.databases[static_cast<std::size_t>(db)]->set_expiry(
            s.databases[static_cast<std::size_t>(db)]->insert("k" + std::to_string(i)), s.now_ms + 100'000);
  });
  server.advance_ms(200'000);
  const auto left = [](Server& s) { return s.databases[0]->size() + s.databases[1]->size(); };
  server.run([&](Server& s) {
    s.tick();
    EXPECT_EQ(left(s), 1500u);
  });
  while (server.run(left) != 0) {
  }
}

}  // namespace
}  // namespace weir::kv::testing
