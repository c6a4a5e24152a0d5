// Snapshot files between Debian's redis-server and this server, in both directions.
#include <gtest/gtest.h>

#include <filesystem>

#include "kv/persistence/loading.hpp"
#include "tests/kv/every_type.hpp"
#include "tests/kv/redis_server.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

// Fills database 0 with every type, each under its name, a key that expires, a function, and database 9.
void fill(WireClient& client) {
  for (const EveryType& type : every_type()) {
    for (const Words& words : type.make) ASSERT_NE(client.call(words)[0], '-');
    ASSERT_EQ(client.call({"RENAME", "k", type.name}), "+OK\r\n");
  }
  client.call({"SET", "expires", "x", "PXAT", "9999999999999"});
  client.call({"FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() return 7 end)"});
  client.call({"SELECT", "9"});
  client.call({"SET", "elsewhere", "y"});
  client.call({"SELECT", "0"});
}

// What clients read of it, except for the order of tables.
std::vector<std::string> seen(WireClient& client) {
  std::vector<std::string> all;
  for (const EveryType& type : every_type()) {
    Words look = type.look;
    look[1] = type.name;
    // Tables have their own order: sort members, then values.
    if (type.any_order && look[0] == "SMEMBERS") look = {"SORT", type.name, "ALPHA"};
    if (type.any_order && look[0] == "HGETALL") look = {"HMGET", type.name, "f0", "f1", "f19", "f1999"};
    all.push_back(std::string(type.name) + ' ' + client.call(look));
    if (is_redis_7_0()) all.push_back(std::string(type.name) + ' ' + encoding_of(client, type.name));
  }
  all.push_back(client.call({"DBSIZE"}));
  all.push_back(client.call({"PEXPIRETIME", "expires"}));
  all.push_back(client.call({"FCALL", "f", "0"}));
  client.call({"SELECT", "9"});
  all.push_back(client.call({"GET", "elsewhere"}));
  client.call({"SELECT", "0"});
  return all;
}

Settings settings_for(const RedisServer& redis) {
  Settings settings = quiet_settings();
  settings.dir = redis.file("");
  return settings;
}

TEST(SnapshotOfRedis, is_loaded) {
  for (const char* compressed : {"yes", "no"}) {
    RedisServer redis({"--rdbcompression", compressed});
    WireClient theirs = redis.connect();
    fill(theirs);
    ASSERT_EQ(theirs.call({"SAVE"}), "+OK\r\n");
    RunningServer weir(settings_for(redis));
    const auto loaded = weir.run([](Server& s) { return load_snapshot(s, [] { return true; }); });
    ASSERT_TRUE(loaded) << loaded.error();
    WireClient ours = weir.connect();
    EXPECT_EQ(seen(ours), seen(theirs));
  }
}

TEST(SnapshotOfRedis, holds_how_much_keys_are_used) {
  RedisServer redis({"--maxmemory", "1gb", "--maxmemory-policy", "allkeys-lfu"});
  WireClient theirs = redis.connect();
  theirs.call({"SET", "k", "v"});
  ASSERT_EQ(theirs.call({"SAVE"}), "+OK\r\n");
  Settings settings = settings_for(redis);
  settings.maxmemory_policy = static_cast<int>(EvictionPolicy::allkeys_lfu);
  RunningServer weir(std::move(settings));
  ASSERT_TRUE(weir.run([](Server& s) { return load_snapshot(s, [] { return true; }).has_value(); }));
  EXPECT_EQ(weir.connect().call({"OBJECT", "FREQ", "k"}), theirs.call({"OBJECT", "FREQ", "k"}));
}

TEST(SnapshotOfWeir, is_loaded_by_redis) {
  for (const char* compressed : {"yes", "no"}) {
    RedisServer redis;
    redis.kill();
    RunningServer weir(settings_for(redis));
    WireClient ours = weir.connect();
    ours.call({"CONFIG", "SET", "rdbcompression", compressed});
    fill(ours);
    ASSERT_EQ(ours.call({"BGSAVE"}), "+Background saving started\r\n");
    while (ours.call({"INFO", "persistence"}).find("rdb_bgsave_in_progress:1") != std::string::npos) {
    }
    redis.start();
    WireClient theirs = redis.connect();
    EXPECT_EQ(seen(theirs), seen(ours));
  }
}

}  // namespace
}  // namespace weir::kv::testing
