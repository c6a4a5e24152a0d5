// The log between this server and Debian's redis-server, in both directions: each reads what the other wrote.
#include <gtest/gtest.h>

#include "tests/kv/every_type.hpp"
#include "tests/kv/redis_server.hpp"
#include "tests/kv/replication_load.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

const std::vector<std::vector<std::string>> logged_commands{
    {"SET", "text", "value"},
    {"SET", "number", "12345"},
    {"SET", "expiring", "value", "EX", "1000"},
    {"SET", "gone", "value", "PX", "1"},
    {"INCRBYFLOAT", "number", "0.1"},
    {"RPUSH", "list", "a", "b", "1", std::string(100'000, 'x')},
    {"BLPOP", "list", "0"},
    {"SADD", "integers", "5", "1", "-7"},
    {"SADD", "members", "a", "b", "c", "d", "e"},
    {"SPOP", "members", "2"},
    {"HSET", "hash", "a", "1", "b", "2"},
    {"HINCRBYFLOAT", "hash", "a", "0.7"},
    {"ZADD", "zset", "0.1", "a", "-inf", "b", "3", "c"},
    {"ZMPOP", "1", "zset", "MIN"},
    {"SET", "binary", std::string("\0\r\n\xff\"", 5)},
    {"EVAL", "redis.call('set','s1','1') redis.call('incr','s1') return 1", "0"},
    {"FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 7 end)"},
    {"SELECT", "3"},
    {"SET", "text", "value"},
    {"MULTI"},
    {"INCR", "n"},
    {"SELECT", "0"},
    {"INCR", "n"},
    {"EXEC"},
    {"MOVE", "text", "5"},
    {"SWAPDB", "5", "6"},
};

void make_log(WireClient& client) {
  for (const auto& words : logged_commands) EXPECT_NE(client.call(words)[0], '-') << words[0];
  client.call({"SELECT", "0"});
  for (const EveryType& type : every_type()) {
    for (const Words& words : type.make) EXPECT_NE(client.call(words)[0], '-') << type.name;
    EXPECT_EQ(client.call({"RENAME", "k", std::string("type:") + type.name}), "+OK\r\n");
  }
}

Settings logging_in(const test::ScratchDirectory& folder) {
  Settings settings = quiet_settings();
  settings.appendonly = true;
  settings.dir = folder.path();
  settings.enable_debug_command = 1;
  return settings;
}

std::vector<std::string> redis_logging_in(const test::ScratchDirectory& folder, const char* preamble) {
  return {"--appendonly",           "yes",    "--appendfsync", "always",
          "--aof-use-rdb-preamble", preamble, "--dir",         folder.path(),
          "--enable-debug-command", "yes"};
}

// Both servers keep an expired key until it is looked at.
std::string log_digest(WireClient& client) {
  client.call({"SELECT", "0"});
  while (client.call({"EXISTS", "gone"}) != ":0\r\n") {
  }
  std::string all = client.call({"FCALL", "f", "0"}) + client.call({"PTTL", "text"});
  for (const std::string& part : state_seen(client)) all += part;
  return all;
}

enum class Base : std::uint8_t { absent, requests, snapshot };

class LogOfBoth : public ::testing::TestWithParam<Base> {
 protected:
  bool rewritten() const { return GetParam() != Base::absent; }
  const char* preamble() const { return GetParam() == Base::requests ? "no" : "yes"; }
  static void await_rewrite(WireClient& client) {
    while (client.call({"INFO", "persistence"}).find("aof_rewrite_in_progress:0") == std::string::npos)
      std::this_thread::yield();
  }
};

TEST_P(LogOfBoth, redis_reads_what_weir_wrote) {
  const test::ScratchDirectory folder;
  std::string ours;
  {
    RunningServer weir(logging_in(folder));
    WireClient client = weir.connect();
    make_log(client);
    if (rewritten()) {
      client.send(encode({"BGREWRITEAOF"}) + encode({"SET", "meanwhile", "1"}));
      EXPECT_EQ(client.reply(), "+Background append only file rewriting started\r\n");
      client.reply();
      await_rewrite(client);
      client.call({"SET", "afterwards", "1"});
    }
    ours = log_digest(client);
  }
  const RedisServer redis(redis_logging_in(folder, preamble()));
  WireClient client = redis.connect();
  EXPECT_EQ(log_digest(client), ours);
}

TEST_P(LogOfBoth, weir_reads_what_redis_wrote) {
  const test::ScratchDirectory folder;
  std::string theirs;
  {
    const RedisServer redis(redis_logging_in(folder, preamble()));
    WireClient client = redis.connect();
    make_log(client);
    if (rewritten()) {
      EXPECT_EQ(client.call({"BGREWRITEAOF"})[0], '+');
      await_rewrite(client);
      client.call({"SET", "afterwards", "1"});
    }
    theirs = log_digest(client);
  }
  RunningServer weir(logging_in(folder));
  WireClient client = weir.connect();
  EXPECT_EQ(log_digest(client), theirs);
}

std::string name_of(const ::testing::TestParamInfo<Base>& one) {
  constexpr const char* names[] = {"absent", "of_requests", "a_snapshot"};
  return names[static_cast<std::size_t>(one.param)];
}

INSTANTIATE_TEST_SUITE_P(WithBase, LogOfBoth, ::testing::Values(Base::absent, Base::requests, Base::snapshot),
                         name_of);

}  // namespace
}  // namespace weir::kv::testing
