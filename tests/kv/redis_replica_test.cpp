// Debian's redis-server as a replica of this server.
#include <gtest/gtest.h>

#include <algorithm>

#include "kv/persistence/loading.hpp"
#include "kv/replication/primary_link.hpp"
#include "tests/kv/redis_server.hpp"
#include "tests/kv/replication_facts.hpp"
#include "tests/kv/replication_load.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

Settings primary_settings() {
  Settings settings;
  settings.port = any_port;
  settings.bind = "127.0.0.1";
  settings.enable_debug_command = 1;
  return settings;
}

std::string port_of(RunningServer& server) {
  return std::to_string(server.run([](Server& s) { return s.port("tcp"); }));
}

std::vector<std::string> replica_of(RunningServer& server, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"--replicaof", "127.0.0.1 " + port_of(server), "--enable-debug-command",
                                 "yes"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Removes all keys that are due.
void expire_all(RunningServer& server) {
  pass_ms(server, 1);
  while (server.run([](Server& s) {
    s.tick();
    return std::ranges::any_of(s.databases, [&](const auto& db) {
      return db->next_expiry_ms() != Record::never && db->next_expiry_ms() <= s.now_ms;
    });
  })) {
  }
}

void expect_equal(RunningServer& server, RedisServer& redis) {
  expire_all(server);
  WireClient ours = server.connect();
  await_replicas(ours);
  WireClient theirs = redis.connect();
  EXPECT_EQ(state_seen(theirs), state_seen(ours));
}

TEST(RedisAsReplica, gets_all_data_and_every_change_of_it) {
  for (const unsigned seed : {1u, 2u}) {
    SCOPED_TRACE(seed);
    ReplicationLoad load(seed);
    RunningServer weir(primary_settings());
    WireClient client = weir.connect();
    for (int i = 0; i < 500; ++i) load.step(client);
    RedisServer redis(replica_of(weir));
    for (int i = 0; i < 3000; ++i) {
      load.step(client);
      if (load.random() % 64 == 0) weir.advance_ms(60'000);
      if (load.random() % 64 == 0) pass_ms(weir, 1);
    }
    expect_equal(weir, redis);
    EXPECT_EQ(fact(client, "stats", "sync_full"), "1");
  }
}

TEST(RedisAsReplica, gets_a_snapshot_while_the_data_changes_on) {
  RunningServer weir(primary_settings());
  WireClient client = weir.connect();
  for (int i = 0; i < 300; ++i) {
    std::string batch;
    for (int j = 0; j < 100; ++j)
      batch += encode({"SET", "key:" + std::to_string(i * 100 + j), std::string(500, 'x')});
    client.send(batch);
    for (int j = 0; j < 100; ++j) client.reply();
  }
  RedisServer redis(replica_of(weir));
  std::mt19937 random(3);
  do {
    for (int j = 0; j < 100; ++j) {
      const std::string key = "key:" + std::to_string(random() % 30000);
      random() % 4 == 0 ? client.call({"DEL", key}) : client.call({"APPEND", key, std::to_string(random())});
    }
  } while (fact(client, "replication", "slave0").find("state=online") == std::string::npos);
  expect_equal(weir, redis);
}

TEST(RedisAsReplica, goes_on_where_it_was_cut_off) {
  RunningServer weir(primary_settings());
  WireClient client = weir.connect();
  client.call({"SET", "before", "1"});
  RedisServer redis(replica_of(weir));
  await_replicas(client);
  ReplicationLoad load(7);
  for (int cut = 0; cut < 3; ++cut) {
    for (int i = 0; i < 100; ++i) load.step(client);
    ASSERT_EQ(client.call({"CLIENT", "KILL", "TYPE", "replica"}), ":1\r\n");
    for (int i = 0; i < 100; ++i) load.step(client);
    await_replicas(client);
  }
  expect_equal(weir, redis);
  EXPECT_EQ(fact(client, "stats", "sync_full"), "1");
  EXPECT_EQ(fact(client, "stats", "sync_partial_ok"), "3");
}

TEST(RedisAsReplica, begins_anew_when_it_was_away_for_longer_than_the_backlog_lasts) {
  Settings settings = primary_settings();
  settings.repl_backlog_size = 100'000;
  RunningServer weir(std::move(settings));
  WireClient client = weir.connect();
  RedisServer redis(replica_of(weir));
  await_replicas(client);
  // It would be connected again before the next command.
  client.call({"MULTI"});
  client.call({"CLIENT", "KILL", "TYPE", "replica"});
  for (int i = 0; i < 4; ++i) client.call({"SET", "k" + std::to_string(i), std::string(100'000, 'x')});
  ASSERT_TRUE(client.call({"EXEC"}).starts_with("*5\r\n:1\r\n"));
  expect_equal(weir, redis);
  EXPECT_EQ(fact(client, "stats", "sync_full"), "2");
  EXPECT_EQ(fact(client, "stats", "sync_partial_err"), "1");
}

// Each continues from the snapshot that the other one took as a replica.
TEST(RedisAsReplica, goes_on_from_a_snapshot_of_either_server) {
  RunningServer primary(primary_settings());
  WireClient client = primary.connect();
  ReplicationLoad load(8);
  for (int i = 0; i < 300; ++i) load.step(client);
  RedisServer redis(replica_of(primary));
  await_replicas(client);
  ASSERT_EQ(redis.connect().call({"SAVE"}), "+OK\r\n");
  redis.kill();
  for (int i = 0; i < 300; ++i) load.step(client);
  {
    Settings settings = quiet_settings();
    settings.enable_debug_command = 1;
    settings.dir = redis.file("");
    settings.replicaof = "127.0.0.1 " + port_of(primary);
    RunningServer weir(std::move(settings));
    weir.run([](Server& s) {
      EXPECT_TRUE(load_snapshot(s, [] { return true; }));
      repl::follow_configured_primary(s);
    });
    await_replicas(client);
    WireClient replica = weir.connect();
    EXPECT_EQ(state_seen(replica), state_seen(client));
    ASSERT_EQ(replica.call({"SAVE"}), "+OK\r\n");
  }
  for (int i = 0; i < 300; ++i) load.step(client);
  redis.start(replica_of(primary));
  expect_equal(primary, redis);
  EXPECT_EQ(fact(client, "stats", "sync_full"), "1");
  EXPECT_EQ(fact(client, "stats", "sync_partial_ok"), "2");
}

TEST(RedisAsReplica, publishes_what_is_published_here) {
  RunningServer weir(primary_settings());
  WireClient client = weir.connect();
  RedisServer redis(replica_of(weir));
  await_replicas(client);
  WireClient listener = redis.connect();
  listener.call({"SUBSCRIBE", "c"});
  client.call({"PUBLISH", "c", "hello"});
  EXPECT_EQ(listener.reply(), "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$5\r\nhello\r\n");
}

TEST(RedisAsReplica, passes_on_to_replicas_of_its_own) {
  RunningServer weir(primary_settings());
  WireClient client = weir.connect();
  RedisServer redis(replica_of(weir));
  await_replicas(client);
  RedisServer second({"--enable-debug-command", "yes"});
  ASSERT_EQ(second.connect().call({"REPLICAOF", "127.0.0.1", port_of(weir)}), "+OK\r\n");
  await_replicas(client, "2");
  client.call({"SET", "k", "v"});
  await_replicas(client, "2");
  for (const RedisServer* replica : {&redis, &second})
    EXPECT_EQ(replica->connect().call({"GET", "k"}), "$1\r\nv\r\n");
}

TEST(RedisAsReplica, is_named_by_role_and_info) {
  RunningServer weir(primary_settings());
  WireClient client = weir.connect();
  RedisServer redis(replica_of(weir, {"--replica-announce-port", "7777"}));
  await_replicas(client);
  const std::string role = client.call({"ROLE"});
  EXPECT_NE(role.find("$9\r\n127.0.0.1\r\n$4\r\n7777\r\n"), std::string::npos) << role;
  const std::string replica = fact(client, "replication", "slave0");
  EXPECT_EQ(replica.substr(0, replica.find(",offset")), "ip=127.0.0.1,port=7777,state=online");
  EXPECT_TRUE(replica.ends_with(",link=tcp")) << replica;
  EXPECT_EQ(fact(client, "replication", "connected_slaves"), "1");
  WireClient theirs = redis.connect();
  EXPECT_EQ(fact(theirs, "replication", "master_link_status"), "up");
  EXPECT_EQ(fact(theirs, "replication", "master_replid"), fact(client, "replication", "master_replid"));
}

}  // namespace
}  // namespace weir::kv::testing
