// This server as a replica of Debian's redis-server.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kv/redis_server.hpp"
#include "tests/kv/replication_facts.hpp"
#include "tests/kv/replication_load.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

Settings replica_settings() {
  Settings settings = quiet_settings();
  settings.enable_debug_command = 1;
  return settings;
}

const std::vector<std::string> debugging{"--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0"};

// `theirs` must have made the changes: in Redis WAIT waits for those of its own client.
void expect_equal(WireClient& theirs, RunningServer& weir) {
  await_replicas(theirs);
  WireClient ours = weir.connect();
  EXPECT_EQ(state_seen(ours), state_seen(theirs));
}

TEST(ReplicaOfRedis, gets_all_data_and_every_change_of_it) {
  for (const char* diskless : {"yes", "no"}) {
    SCOPED_TRACE(diskless);
    RedisServer redis(debugging);
    WireClient client = redis.connect();
    client.call({"CONFIG", "SET", "repl-diskless-sync", diskless});
    ReplicationLoad load(11);
    for (int i = 0; i < 500; ++i) load.step(client);
    RunningServer weir(replica_settings());
    EXPECT_EQ(weir.connect().call({"REPLICAOF", redis.path(), "0"}), "+OK\r\n");
    for (int i = 0; i < 3000; ++i) load.step(client);
    expect_equal(client, weir);
  }
}

TEST(ReplicaOfRedis, goes_on_where_it_was_cut_off) {
  RedisServer redis(debugging);
  WireClient client = redis.connect();
  RunningServer weir(replica_settings());
  weir.connect().call({"REPLICAOF", redis.path(), "0"});
  await_replicas(client);
  ReplicationLoad load(12);
  for (int cut = 0; cut < 3; ++cut) {
    for (int i = 0; i < 100; ++i) load.step(client);
    ASSERT_EQ(client.call({"CLIENT", "KILL", "TYPE", "replica"}), ":1\r\n");
    for (int i = 0; i < 100; ++i) load.step(client);
    await_replicas(client);
  }
  expect_equal(client, weir);
  EXPECT_EQ(fact(client, "stats", "sync_full"), "1");
  EXPECT_EQ(fact(client, "stats", "sync_partial_ok"), "3");
}

TEST(ReplicaOfRedis, gives_its_password) {
  RedisServer redis(debugging);
  WireClient client = redis.connect();
  client.call({"SET", "k", "v"});
  client.call({"ACL", "SETUSER", "follower", "on", ">secret", "+psync", "+replconf", "+ping"});
  Settings settings = replica_settings();
  settings.masteruser = "follower";
  settings.masterauth = "secret";
  RunningServer weir(std::move(settings));
  client.call({"CONFIG", "SET", "requirepass", "other"});
  weir.connect().call({"REPLICAOF", redis.path(), "0"});
  await_replicas(client);
  EXPECT_EQ(weir.connect().call({"GET", "k"}), "$1\r\nv\r\n");
}

// The data moves over, and back.
TEST(ReplicaOfRedis, takes_over_and_hands_back) {
  RedisServer redis(debugging);
  WireClient theirs = redis.connect();
  theirs.call({"SET", "a", "1"});
  RunningServer weir(replica_settings());
  WireClient ours = weir.connect();
  ours.call({"REPLICAOF", redis.path(), "0"});
  await_replicas(theirs);
  EXPECT_EQ(ours.call({"SET", "b", "2"}), "-READONLY You can't write against a read only replica.\r\n");
  ours.call({"REPLICAOF", "NO", "ONE"});
  EXPECT_EQ(ours.call({"SET", "b", "2"}), "+OK\r\n");
  ours.call({"CONFIG", "SET", "bind", "127.0.0.1"});
  ASSERT_EQ(ours.call({"CONFIG", "SET", "port", "-1"}), "+OK\r\n");
  const std::string port = std::to_string(weir.run([](Server& s) { return s.port("tcp"); }));
  theirs.call({"REPLICAOF", "127.0.0.1", port});
  await_replicas(ours);
  EXPECT_EQ(theirs.call({"GET", "b"}), "$1\r\n2\r\n");
  EXPECT_EQ(fact(ours, "stats", "sync_full"), "0") << "both know the history";
  EXPECT_EQ(fact(ours, "stats", "sync_partial_ok"), "1");
  theirs.call({"REPLICAOF", "NO", "ONE"});
  theirs.call({"SET", "c", "3"});
  ours.call({"REPLICAOF", redis.path(), "0"});
  await_replicas(theirs);
  EXPECT_EQ(ours.call({"GET", "c"}), "$1\r\n3\r\n");
}

TEST(ReplicaOfRedis, has_replicas_of_its_own) {
  RedisServer redis(debugging);
  WireClient client = redis.connect();
  Settings settings = replica_settings();
  settings.bind = "127.0.0.1";
  settings.port = any_port;
  RunningServer weir(std::move(settings));
  weir.connect().call({"REPLICAOF", redis.path(), "0"});
  await_replicas(client);
  ReplicationLoad load(13);
  for (int i = 0; i < 200; ++i) load.step(client);
  // It joins in the middle of a stream, after a database was selected.
  client.call({"SELECT", "2"});
  client.call({"SET", "k", "v"});
  await_replicas(client);
  RedisServer last(debugging);
  WireClient lasts = last.connect();
  lasts.call({"REPLICAOF", "127.0.0.1", std::to_string(weir.run([](Server& s) { return s.port("tcp"); }))});
  for (int i = 0; i < 500; ++i) load.step(client);
  await_replicas(client);
  await_offset(lasts, fact(client, "replication", "master_repl_offset"));
  EXPECT_EQ(state_seen(lasts), state_seen(client));
}

}  // namespace
}  // namespace weir::kv::testing
