// A full cache while a snapshot, a rewrite of the log or a stuck replica is under way, beside redis-server:
// both evict about as many keys, keep about as many, and refuse none.
#include <gtest/gtest.h>

#include "kv/text/heap.hpp"
#include "tests/kv/redis_server.hpp"
#include "tests/kv/replication_facts.hpp"
#include "tests/kv/running_server.hpp"
#include "tests/kv/stuck_disk.hpp"

namespace weir::kv::testing {
namespace {

constexpr int at_first = 12'000;
constexpr int written = 2'000;
constexpr const char* ok = "+OK\r\n";

// What is under way, and how INFO says so.
struct UnderWay {
  const char* name;
  std::vector<const char*> begin;
  const char* section;
  const char* fact;
};
const UnderWay under_way[] = {
    {"snapshot", {"BGSAVE"}, "persistence", "rdb_bgsave_in_progress"},
    {"log_rewrite", {"BGREWRITEAOF"}, "persistence", "aof_rewrite_in_progress"},
    {"stuck_replica", {"PSYNC", "?", "-1"}, "replication", "connected_slaves"},
};

struct Outcome {
  long long keys_before, keys, evicted;
  int refused = 0;
  std::string under_way;
};

int write(WireClient& client, int count, const std::string& prefix) {
  const std::string value(2000, 'x');
  int refused = 0;
  for (int done = 0; done < count; done += 100) {
    std::string batch;
    for (int i = 0; i < 100; ++i) batch += encode({"SET", prefix + std::to_string(done + i), value});
    client.send(batch);
    for (int i = 0; i < 100; ++i) refused += client.reply() == ok ? 0 : 1;
  }
  return refused;
}

long long keys_of(WireClient& client) { return std::stoll(client.call({"DBSIZE"}).substr(1)); }
long long evicted_by(WireClient& client) { return std::stoll(fact(client, "stats", "evicted_keys")); }

Outcome outcome(WireClient& client, WireClient other, const UnderWay& what) {
  const long long used = std::stoll(fact(client, "memory", "used_memory"));
  client.call(
      {"CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", std::to_string(used + 20'000'000)});
  Outcome seen{};
  seen.refused = write(client, at_first, "k");
  seen.keys_before = keys_of(client);
  const long long before = evicted_by(client);
  // A replica that takes no end mark would need the disk.
  other.call({"REPLCONF", "capa", "eof"});
  other.send(encode({what.begin.begin(), what.begin.end()}));
  while (fact(client, what.section, what.fact) != "1") std::this_thread::yield();
  seen.refused += write(client, written, "n");
  seen.under_way = fact(client, what.section, what.fact);
  seen.keys = keys_of(client);
  seen.evicted = evicted_by(client) - before;
  return seen;
}

class EvictionWhile : public ::testing::TestWithParam<UnderWay> {};

TEST_P(EvictionWhile, is_under_way_takes_as_many_keys_as_that_of_redis) {
  // Its child sleeps for each key, so that it is not done before the writes are.
  RedisServer redis({"--rdb-key-save-delay", "500", "--repl-diskless-sync-delay", "0"});
  WireClient theirs_client = redis.connect();
  const Outcome theirs = outcome(theirs_client, redis.connect(), GetParam());
  const ScratchFolder folder;
  Settings settings = quiet_settings();
  settings.dir = folder.path();
  settings.rdbcompression = false;
  StuckDisk disk;
  Outcome ours{};
  {
    RunningServer weir(settings, disk.disk());
    WireClient client = weir.connect();
    ours = outcome(client, weir.connect(), GetParam());
    disk.release();
  }
  EXPECT_EQ(theirs.under_way, "1");
  EXPECT_EQ(ours.under_way, "1");
  EXPECT_EQ(theirs.refused, 0);
  EXPECT_EQ(ours.refused, 0);
  RecordProperty("evicted", std::to_string(ours.evicted) + ", redis " + std::to_string(theirs.evicted));
  constexpr long long near = written / 4;
  EXPECT_NEAR(ours.evicted, theirs.evicted, near);
  EXPECT_NEAR(ours.keys_before - ours.keys, theirs.keys_before - theirs.keys, near);
}
INSTANTIATE_TEST_SUITE_P(While, EvictionWhile, ::testing::ValuesIn(under_way),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace weir::kv::testing
