// MIGRATE between Debian's redis-server and this server, in both directions, and its replies beside Redis's.
#include <gtest/gtest.h>

#include "tests/kv/every_type.hpp"
#include "tests/kv/own_network.hpp"
#include "tests/kv/redis_server.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

constexpr const char* ok = "+OK\r\n";

TEST(RedisMigrate, moves_every_type_both_ways) {
  if (!enter_own_network())
    GTEST_SKIP() << "the kernel lets this user make no network namespace (CLONE_NEWNET)";
  RedisServer redis({"--port", "6380", "--bind", "127.0.0.1"});
  Settings settings = quiet_settings();
  settings.bind = "127.0.0.1";
  settings.port = 6381;
  RunningServer weir(std::move(settings));
  WireClient ours = weir.connect();
  WireClient theirs = redis.connect();
  for (const EveryType& type : every_type()) {
    SCOPED_TRACE(type.name);
    for (const Words& words : type.make) ours.call(words);
    ours.call({"EXPIRE", "k", "1000"});
    const std::string before = seen(ours, type);
    ASSERT_EQ(ours.call({"MIGRATE", "127.0.0.1", "6380", "k", "0", "60000"}), ok);
    EXPECT_EQ(ours.call({"EXISTS", "k"}), ":0\r\n");
    EXPECT_EQ(seen(theirs, type), before);
    ASSERT_EQ(theirs.call({"MIGRATE", "127.0.0.1", "6381", "", "0", "60000", "KEYS", "k"}), ok);
    EXPECT_EQ(theirs.call({"EXISTS", "k"}), ":0\r\n");
    EXPECT_EQ(seen(ours, type), before);
    EXPECT_EQ(ours.call({"TTL", "k"}), ":1000\r\n");
    ours.call({"DEL", "k"});
  }
}

// Both move to the same third server, one after the other.
TEST(RedisMigrate, answers_as_redis_does) {
  if (!enter_own_network())
    GTEST_SKIP() << "the kernel lets this user make no network namespace (CLONE_NEWNET)";
  RedisServer target({"--port", "6380", "--bind", "127.0.0.1"});
  RedisServer redis;
  RunningServer weir;
  WireClient at_target = target.connect();
  WireClient ours = weir.connect();
  WireClient theirs = redis.connect();
  const auto to = [](Words more) {
    more.insert(more.begin(), {"MIGRATE", "127.0.0.1", "6380"});
    return more;
  };
  struct Row {
    Words before;  // at the target
    Words words;
    bool same_keys = true;  // false: Redis sends the keys before it knows that SELECT or AUTH failed
  };
  const std::vector<Row> rows = {
      {{}, to({"none", "0", "5000"})},
      {{}, to({"k", "0", "5000"})},
      {{"SET", "k", "there"}, to({"k", "0", "5000"})},
      {{"SET", "k", "there"}, to({"k", "0", "5000", "REPLACE"})},
      {{}, to({"k", "0", "5000", "COPY"})},
      {{"SET", "b", "there"}, to({"", "0", "5000", "KEYS", "a", "none", "b", "c"})},
      {{}, to({"k", "99", "5000"}), false},
      {{}, to({"k", "0", "5000", "AUTH", "wrong"}), false},
      {{"CONFIG", "SET", "requirepass", "pw"}, to({"k", "0", "5000", "AUTH", "pw"})},
      {{}, to({"k", "0", "5000", "AUTH2", "default", "pw", "REPLACE"})},
      {{"CONFIG", "SET", "requirepass", ""}, to({"k", "0", "0"})},
      {{}, to({"k", "0", "5000", "COPY", "KEYS", "k"})},
      {{}, to({"k", "0", "x"})},
      {{}, to({"k", "x", "x"})},
      {{}, to({"k", "0", "5000", "AUTH2", "x"})},
      {{}, {"MIGRATE", "127.0.0.1", "6380", "k", "0"}},
      {{}, {"COMMAND", "GETKEYS", "MIGRATE", "h", "1", "", "0", "1", "AUTH", "KEYS", "KEYS", "a", "b"}},
      {{}, {"COMMAND", "GETKEYS", "MIGRATE", "h", "1", "a", "0", "1"}},
      {{}, {"COMMAND", "INFO", "MIGRATE"}},
  };
  for (const Row& row : rows) {
    std::string text;
    for (const std::string& word : row.words) text += word + ' ';
    std::string replies[2];
    std::string states[2];
    for (const auto& [source, i] : {std::pair{&theirs, 0}, std::pair{&ours, 1}}) {
      at_target.call({"FLUSHALL"});
      if (!row.before.empty()) at_target.call(row.before);
      source->call({"MSET", "k", "v", "a", "1", "b", "2", "c", "3"});
      replies[i] = source->call(row.words);
      states[i] = source->call({"EXISTS", "k", "a", "b", "c"}) + at_target.call({"MGET", "k", "a", "b", "c"});
    }
    EXPECT_EQ(replies[1], replies[0]) << text;
    if (row.same_keys) {
      EXPECT_EQ(states[1], states[0]) << text;
    }
  }
}

}  // namespace
}  // namespace weir::kv::testing
