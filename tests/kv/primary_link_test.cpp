// A server that replicates another: between two servers of this kind, and with a hostile primary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kv/replication/replication.hpp"
#include "tests/kv/fake_primary.hpp"
#include "tests/kv/replication_facts.hpp"
#include "tests/kv/replication_load.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

Settings debugged() {
  Settings settings = quiet_settings();
  settings.enable_debug_command = 1;
  return settings;
}

// Two servers, the second a replica of the first.
struct Pair {
  explicit Pair(Settings of_replica = debugged()) : primary(debugged()), replica(std::move(of_replica)) {
    follow();
  }
  void follow() {
    EXPECT_EQ(replicas.call({"REPLICAOF", primary.path(), "0"}), "+OK\r\n");
    await_replicas(primarys);
  }
  void expect_equal() {
    await_replicas(primarys);
    EXPECT_EQ(state_seen(replicas), state_seen(primarys));
  }

  RunningServer primary, replica;
  WireClient primarys = primary.connect();
  WireClient replicas = replica.connect();
};

TEST(FollowingServer, has_all_data_and_every_change_of_it) {
  Pair servers;
  ReplicationLoad load(21, ReplicationLoad::Commands::all);
  for (int i = 0; i < 2000; ++i) load.step(servers.primarys);
  servers.expect_equal();
}

// Over TCP, with data from the start.
TEST(FollowingServer, gets_a_large_snapshot_while_it_serves_its_old_data) {
  Settings settings = debugged();
  settings.port = any_port;
  settings.bind = "127.0.0.1";
  RunningServer primary(std::move(settings));
  RunningServer replica(debugged());
  WireClient primarys = primary.connect();
  WireClient replicas = replica.connect();
  replicas.call({"SET", "old", "1"});
  for (int i = 0; i < 90; ++i) {
    std::vector<std::string> words{"HSET", "h" + std::to_string(i % 3)};
    for (int j = 0; j < 200; ++j)
      words.insert(words.end(), {std::to_string(i) + ':' + std::to_string(j), "value"});
    primarys.call(words);
  }
  const std::string port = std::to_string(primary.run([](Server& s) { return s.port("tcp"); }));
  replicas.call({"REPLICAOF", "localhost", port});
  std::size_t served = 0;
  for (std::string old; (old = replicas.call({"GET", "old"})) != "$-1\r\n"; ++served)
    EXPECT_EQ(old, "$1\r\n1\r\n");
  EXPECT_GT(served, 0u);
  await_replicas(primarys);
  EXPECT_EQ(state_seen(replicas), state_seen(primarys));
}

TEST(FollowingServer, gets_values_larger_than_what_may_wait_for_it) {
  Settings settings = debugged();
  settings.replica_output.hard_bytes = 1 << 18;
  settings.repl_backlog_size = 1 << 18;
  RunningServer primary(std::move(settings));
  RunningServer replica(debugged());
  WireClient primarys = primary.connect();
  WireClient replicas = replica.connect();
  for (int i = 0; i < 4; ++i) primarys.call({"SET", "k" + std::to_string(i), std::string(2 << 20, 'x')});
  replicas.call({"REPLICAOF", primary.path(), "0"});
  await_replicas(primarys);
  EXPECT_EQ(fact(primarys, "stats", "sync_full"), "1");
  EXPECT_EQ(state_seen(replicas), state_seen(primarys));
}

TEST(FollowingServer, counts_synchronisations_until_the_counts_are_reset) {
  Pair servers;
  EXPECT_EQ(fact(servers.primarys, "stats", "sync_full"), "1");
  servers.primarys.call({"CONFIG", "RESETSTAT"});
  EXPECT_EQ(fact(servers.primarys, "stats", "sync_full"), "0");
}

TEST(FollowingServer, leaves_expired_keys_to_the_primary) {
  Pair servers;
  servers.primarys.call({"SET", "k", "5", "PX", "1000"});
  servers.primarys.call({"RPUSH", "l", "a"});
  servers.primarys.call({"PEXPIRE", "l", "1000"});
  await_replicas(servers.primarys);
  servers.replica.advance_ms(2000);
  EXPECT_EQ(servers.replicas.call({"GET", "k"}), "$-1\r\n") << "it is not there for clients";
  EXPECT_EQ(servers.replica.run([](Server& s) { return s.databases[0]->size(); }), 2u) << "but it is kept";
  // The primary still has the key, so what is done to it must be done here, too.
  servers.primarys.call({"INCR", "k"});
  servers.primarys.call({"RPUSH", "l", "b"});
  servers.primarys.call({"PERSIST", "k"});
  servers.primarys.call({"PERSIST", "l"});
  servers.expect_equal();
  EXPECT_EQ(servers.replicas.call({"GET", "k"}), "$1\r\n6\r\n");
  EXPECT_EQ(servers.replicas.call({"LLEN", "l"}), ":2\r\n");
  servers.primarys.call({"SET", "k", "5", "PX", "1000"});
  servers.primary.advance_ms(2000);
  EXPECT_EQ(servers.primarys.call({"GET", "k"}), "$-1\r\n");
  await_replicas(servers.primarys);
  EXPECT_EQ(servers.replica.run([](Server& s) { return s.databases[0]->size(); }), 1u);
}

// Nobody else would ever remove them: the primary does not know these keys.
TEST(FollowingServer, removes_expired_keys_of_its_own_clients) {
  Settings writable = debugged();
  writable.replica_read_only = false;
  Pair servers(std::move(writable));
  const auto size = [&] { return servers.replica.run([](Server& s) { return s.databases[0]->size(); }); };
  servers.primarys.call({"SET", "primarys", "1", "PX", "1000"});
  await_replicas(servers.primarys);
  servers.replicas.call({"SET", "own", "1", "PX", "1000"});
  servers.replicas.call({"SET", "overwritten", "1", "PX", "1000"});
  servers.replicas.call({"SET", "renamed", "1", "PX", "1000"});
  servers.replicas.call({"RENAME", "renamed", "other"});
  servers.primarys.call({"SET", "overwritten", "2", "PX", "1000"});
  await_replicas(servers.primarys);
  EXPECT_EQ(size(), 4u);
  EXPECT_EQ(fact(servers.replicas, "stats", "slave_expires_tracked_keys"), "2");
  pass_ms(servers.replica, 2000);
  EXPECT_EQ(size(), 2u) << "the primary decides when its keys go";
  EXPECT_EQ(servers.replicas.call({"EXISTS", "primarys", "overwritten"}), ":0\r\n");
  EXPECT_EQ(servers.replicas.call({"INCR", "primarys"}), ":1\r\n");
  EXPECT_EQ(servers.replicas.call({"TTL", "primarys"}), ":-1\r\n");
  servers.replicas.call({"SET", "own", "1", "PX", "1000"});
  servers.replicas.call({"REPLICAOF", "NO", "ONE"});
  pass_ms(servers.replica, 2000);
  EXPECT_EQ(size(), 1u);
}

TEST(FollowingServer, connects_again_when_a_client_kills_the_link) {
  FakePrimary primary;
  RunningServer replica(debugged());
  WireClient client = replica.connect();
  EXPECT_EQ(client.call({"CLIENT", "KILL", "TYPE", "master"}), ":0\r\n");
  client.call({"REPLICAOF", primary.path(), "0"});
  WireClient first = primary.accept();
  first.through("PING\r\n");
  EXPECT_EQ(client.call({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}), ":0\r\n");
  EXPECT_TRUE(first.quiet());
  EXPECT_EQ(client.call({"CLIENT", "KILL", "TYPE", "primary"}), ":1\r\n");
  EXPECT_EQ(first.until_closed(), "");
  pass_ms(replica, 2000);
  primary.accept().through("PING\r\n");
}

TEST(FollowingServer, asks_ever_less_often_for_a_snapshot_that_it_cannot_read) {
  FakePrimary primary;
  RunningServer replica(debugged());
  WireClient client = replica.connect();
  client.call({"REPLICAOF", primary.path(), "0"});
  const auto answer = [&] {
    WireClient link = primary.greeted();
    link.send("+FULLRESYNC " + std::string(40, 'a') + " 0\r\n$9\r\nNONSENSE!");
    link.until_closed();
  };
  for (const std::string wait : {"1", "2", "4", "8"}) {
    answer();
    EXPECT_NE(replica.log().find("the next snapshot is asked for in " + wait + " s"), std::string::npos);
    pass_ms(replica, std::stoi(wait) * 1000 + 1000);
  }
  answer();
  EXPECT_NE(replica.log().find("its snapshot does not load: this is no RDB file"), std::string::npos);
}

// CVE-2026-23631: the data that a script is using is not exchanged below it.
TEST(FollowingServer, loads_no_snapshot_while_a_script_runs) {
  Settings of_replica = debugged();
  of_replica.busy_reply_threshold_ms = 1;
  RunningServer primary(debugged());
  RunningServer replica(std::move(of_replica));
  WireClient primarys = primary.connect();
  WireClient slow = replica.connect();
  WireClient other = replica.connect();
  primarys.call({"SET", "new", "1"});
  other.call({"SET", "old", "1"});
  slow.call({"MULTI"});
  slow.call({"REPLICAOF", primary.path(), "0"});
  slow.call({"EVAL",
             "while redis.call('exists', 'old') == 1 and redis.call('exists', 'new') == 0 do end return "
             "'exchanged'",
             "0"});
  slow.send(encode({"EXEC"}));
  while (fact(primarys, "replication", "slave0").find("state=") == std::string::npos) {
  }
  while (!other.call({"PING"}).starts_with("-BUSY")) {
  }
  EXPECT_EQ(other.call({"SCRIPT", "KILL"}), "+OK\r\n");
  EXPECT_THAT(slow.reply(), ::testing::HasSubstr("Script killed by user"));
  await_replicas(primarys);
  EXPECT_EQ(other.call({"EXISTS", "old", "new"}), ":1\r\n");
}

TEST(FollowingServer, is_read_only) {
  Pair servers;
  constexpr const char* refused = "-READONLY You can't write against a read only replica.\r\n";
  EXPECT_EQ(servers.replicas.call({"SET", "a", "1"}), refused);
  const std::string of_script = servers.replicas.call({"EVAL", "return redis.call('set','a','1')", "0"});
  EXPECT_TRUE(of_script.starts_with("-READONLY")) << of_script;
  servers.replicas.call({"CONFIG", "SET", "replica-read-only", "no"});
  EXPECT_EQ(servers.replicas.call({"SET", "a", "1"}), "+OK\r\n");
}

TEST(FollowingServer, may_refuse_to_serve_while_it_does_not_know_the_data) {
  Settings settings = debugged();
  settings.replica_serve_stale_data = false;
  RunningServer replica(std::move(settings));
  WireClient client = replica.connect();
  client.call({"REPLICAOF", "/nowhere", "0"});
  EXPECT_EQ(client.call({"GET", "a"}),
            "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n");
  EXPECT_EQ(client.call({"REPLICAOF", "NO", "ONE"}), "+OK\r\n");
  EXPECT_EQ(client.call({"GET", "a"}), "$-1\r\n");
}

TEST(FollowingServer, ends_the_waits_of_its_clients_for_changes) {
  const std::vector<std::string> waits[] = {
      {"BLPOP", "l", "0"}, {"WAIT", "1", "0"}, {"WAITAOF", "0", "1", "0"}};
  for (const auto& words : waits) {
    SCOPED_TRACE(words[0]);
    RunningServer replica(debugged());
    WireClient waiting = replica.connect();
    WireClient client = replica.connect();
    waiting.send(encode(words));
    while (replica.run([](Server& s) { return s.blocking.size(); }) == 0) std::this_thread::yield();
    client.call({"REPLICAOF", "/nowhere", "0"});
    EXPECT_TRUE(waiting.reply().starts_with("-UNBLOCKED"));
  }
}

TEST(FollowingServer, knows_both_histories_when_it_has_taken_over) {
  Pair servers;
  servers.primarys.call({"SET", "a", "1"});
  RunningServer third(debugged());
  WireClient thirds = third.connect();
  thirds.call({"REPLICAOF", servers.primary.path(), "0"});
  await_replicas(servers.primarys, "2");
  servers.replicas.call({"REPLICAOF", "NO", "ONE"});
  servers.replicas.call({"SET", "b", "2"});
  thirds.call({"REPLICAOF", servers.replica.path(), "0"});
  servers.primarys.call({"REPLICAOF", servers.replica.path(), "0"});
  await_replicas(servers.replicas, "2");
  EXPECT_EQ(fact(servers.replicas, "stats", "sync_full"), "0");
  EXPECT_EQ(fact(servers.replicas, "stats", "sync_partial_ok"), "2");
  EXPECT_EQ(state_seen(thirds), state_seen(servers.replicas));
  EXPECT_EQ(state_seen(servers.primarys), state_seen(servers.replicas));
}

const std::string history_id(40, 'a');

// Data that may follow the answer to PSYNC; the link is closed, and everything stays as it was.
TEST(FollowingServer, loses_nothing_but_the_link_to_a_primary_that_means_harm) {
  const std::string mark(40, 'm');
  const std::string full = "+FULLRESYNC " + history_id + " 1\r\n";
  // An empty snapshot without a checksum.
  const std::string empty = std::string("REDIS0010\xff", 10) + std::string(8, '\0');
  const std::string loads = full + "$18\r\n" + empty;
  const std::string lies[] = {
      "-ERR no\r\n",
      "+FULLRESYNC\r\n",
      "+FULLRESYNC short 1\r\n",
      "+FULLRESYNC " + history_id + " -1\r\n",
      "+CONTINUE " + history_id + "\r\n",
      std::string(5000, 'x'),
      full + "$-1\r\n",
      full + "$abc\r\n",
      full + "$EOF:short\r\n",
      full + std::string(5000, 'x'),
      full + "$18\r\n" + std::string(18, 'x'),
      full + "$19\r\n" + empty + "x",
      full + "$EOF:" + mark + "\r\n" + empty.substr(0, 9) + mark,
      full + "$100\r\n" + std::string("REDIS0010\x00\x01k\x80\xff\xff\xff\xff", 17) + std::string(83, 'x'),
      loads + "*1\r\n$8\r\nSHUTDOWN\r\n",
      loads + encode({"CONFIG", "SET", "maxmemory", "1"}),
      loads + encode({"EVAL", "while true do end", "0"}),
      loads + encode({"DEBUG", "SEGFAULT"}),
      loads + encode({"NOSUCH"}),
      loads + encode({"EXEC"}),
      loads + encode({"MULTI"}) + encode({"MULTI"}),
      loads + encode({"MULTI"}) + encode({"SET", "a", "2"}) + encode({"SHUTDOWN"}) + encode({"EXEC"}),
      loads + "*1\r\n$-1\r\n",
      loads + "*-1\r\n",
      loads + "*2147483648\r\n",
      loads + "*1\r\n$9223372036854775807\r\n",
      loads + "GET a\r\n",
      loads + std::string(5000, '*'),
  };
  FakePrimary primary;
  RunningServer replica(debugged());
  WireClient client = replica.connect();
  for (const std::string& lie : lies) {
    SCOPED_TRACE(lie.substr(0, 120));
    client.call({"REPLICAOF", "NO", "ONE"});
    client.call({"FLUSHALL"});
    client.call({"SET", "a", "1"});
    const bool loads_it = lie.starts_with(loads);
    replica.run([](Server& s) { s.replication->history().stop(s.random_id()); });
    client.call({"REPLICAOF", primary.path(), "0"});
    WireClient link = primary.greeted();
    link.send(lie);
    // A link that ends while the snapshot is loaded leaves the old data; these end because of what follows
    // it.
    if (!loads_it) ::shutdown(link.fd(), lie.size() > 4000 ? SHUT_RD : SHUT_WR);
    link.until_closed();
    EXPECT_EQ(client.call({"GET", "a"}), loads_it ? "$-1\r\n" : "$1\r\n1\r\n");
    EXPECT_EQ(client.call({"CONFIG", "GET", "maxmemory"}), "*2\r\n$9\r\nmaxmemory\r\n$1\r\n0\r\n");
  }
}

TEST(FollowingServer, applies_a_transaction_whole_or_not_at_all) {
  FakePrimary primary;
  RunningServer replica(debugged());
  WireClient client = replica.connect();
  client.call({"REPLICAOF", primary.path(), "0"});
  const std::string empty = std::string("REDIS0010\xff", 10) + std::string(8, '\0');
  const std::string transaction = encode({"MULTI"}) + encode({"SET", "a", "1"}) + encode({"SET", "b", "2"});
  {
    WireClient link = primary.greeted();
    link.send("+FULLRESYNC " + history_id + " 7\r\n$18\r\n" + empty + encode({"SET", "c", "3"}) +
              transaction + encode({"REPLCONF", "GETACK", "*"}));
    link.send(encode({"PING"}));
    await_offset(client, std::to_string(7 + encode({"SET", "c", "3"}).size()));
    EXPECT_EQ(client.call({"DBSIZE"}), ":1\r\n");
  }
  while (fact(client, "replication", "master_link_status") != "down") {
  }
  EXPECT_EQ(client.call({"DBSIZE"}), ":1\r\n");
  pass_ms(replica, 1);
  // It requests what it has not applied.
  WireClient link = primary.accept();
  const std::string asked = std::to_string(8 + encode({"SET", "c", "3"}).size());
  for (const char* last : {"PING\r\n", "listening-port\r\n$1\r\n0\r\n", "psync2\r\n", "9.0.0\r\n"}) {
    link.through(last);
    link.send("+OK\r\n");
  }
  link.through(encode({"PSYNC", history_id, asked}));
  link.send("+CONTINUE\r\n" + transaction + encode({"EXEC"}));
  while (client.call({"DBSIZE"}) != ":3\r\n") {
  }
}

TEST(FollowingServer, gives_up_a_primary_that_is_silent) {
  FakePrimary primary;
  RunningServer replica(debugged());
  WireClient client = replica.connect();
  client.call({"REPLICAOF", primary.path(), "0"});
  WireClient silent = primary.accept();
  silent.through("PING\r\n");
  pass_ms(replica, 59'000);
  EXPECT_TRUE(silent.quiet());
  pass_ms(replica, 2'000);
  EXPECT_EQ(silent.until_closed(), "");
  EXPECT_NE(replica.log().find("nothing was heard of it for repl-timeout"), std::string::npos);
}

TEST(FollowingServer, may_be_told_to_follow_and_not_to_at_any_moment) {
  Pair servers;
  for (int i = 0; i < 50; ++i) {
    servers.replicas.call({"REPLICAOF", "NO", "ONE"});
    servers.primarys.call({"INCR", "n"});
    EXPECT_EQ(servers.replicas.call({"REPLICAOF", servers.primary.path(), "0"}), "+OK\r\n");
  }
  servers.expect_equal();
}

}  // namespace
}  // namespace weir::kv::testing
