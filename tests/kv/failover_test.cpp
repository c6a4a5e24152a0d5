// FAILOVER, with a replica that a test plays by hand.
#include <gtest/gtest.h>

#include "tests/kv/fake_primary.hpp"
#include "tests/kv/hand_replica.hpp"
#include "tests/kv/replication_facts.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

const std::string new_id(40, 'b');

// A primary whose replica has not confirmed the last write, and where that replica listens.
struct Handing {
  explicit Handing(Settings settings = quiet_settings()) : server(std::move(settings)) {
    replica.follow();
    EXPECT_EQ(client.call({"SET", "k", "1"}), "+OK\r\n");
    replica.take({"SET", "k", "1"});
  }
  std::string fail_over(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"FAILOVER", "TO", target.path(), "0"};
    words.insert(words.end(), more.begin(), more.end());
    return client.call(words);
  }
  void confirm_all() {
    replica.take(asks_for_confirmation);
    replica.confirm();
  }
  // The link over which the server asks the replica to take over.
  WireClient asked() {
    WireClient link = target.introduced();
    const std::string question = link.through("FAILOVER\r\n");
    EXPECT_NE(question.find(replica.id), std::string::npos) << question;
    EXPECT_NE(question.find("\r\n" + std::to_string(replica.offset + 1) + "\r\n"), std::string::npos)
        << question;
    return link;
  }
  std::string state() { return fact(client, "replication", "master_failover_state"); }
  void await_state(const std::string& wanted) {
    while (state() != wanted) std::this_thread::yield();
  }
  std::string role() { return fact(client, "replication", "role"); }

  FakePrimary target;
  RunningServer server;
  WireClient client = server.connect();
  WireClient writer = server.connect();
  HandReplica replica{server, target.path()};
};

TEST(Failover, refuses_what_makes_no_sense) {
  Handing at;
  const struct {
    std::string words, error;
  } rows[] = {
      {"ABORT", "ERR No failover in progress."},
      {"TIMEOUT 0", "ERR FAILOVER timeout must be greater than 0"},
      {"TIMEOUT x", "ERR value is not an integer or out of range"},
      {"TIMEOUT 5 TIMEOUT 6", "ERR syntax error"},
      {"TO a", "ERR syntax error"},
      {"TO a b", "ERR value is not an integer or out of range"},
      {"TO a 1", "ERR FAILOVER target HOST and PORT is not a replica."},
      {"TO a 1 FORCE", "ERR FAILOVER with force option requires both a timeout and target HOST and IP."},
      {"FORCE TIMEOUT 5", "ERR FAILOVER with force option requires both a timeout and target HOST and IP."},
      {"ABORT TIMEOUT 5", "ERR syntax error"},
      {"bogus", "ERR syntax error"},
  };
  for (const auto& row : rows) {
    at.client.send("FAILOVER " + row.words + "\r\n");
    EXPECT_EQ(at.client.reply(), '-' + row.error + "\r\n") << row.words;
  }
  EXPECT_EQ(at.state(), "no-failover");
}

TEST(Failover, needs_a_replica) {
  RunningServer server;
  EXPECT_EQ(server.connect().call({"FAILOVER"}), "-ERR FAILOVER requires connected replicas.\r\n");
}

TEST(Failover, holds_writes_back_until_it_is_called_off) {
  Handing at;
  EXPECT_EQ(at.client.call({"FAILOVER"}), "+OK\r\n");
  EXPECT_EQ(at.state(), "waiting-for-sync");
  at.writer.send(encode({"SET", "k", "2"}));
  EXPECT_EQ(at.client.call({"GET", "k"}), "$1\r\n1\r\n");
  EXPECT_TRUE(at.writer.quiet());
  EXPECT_EQ(at.client.call({"FAILOVER"}), "-ERR FAILOVER already in progress.\r\n");
  EXPECT_EQ(at.client.call({"REPLICAOF", "NO", "ONE"}), "-ERR REPLICAOF not allowed while failing over.\r\n");
  EXPECT_EQ(at.client.call({"FAILOVER", "ABORT"}), "+OK\r\n");
  EXPECT_EQ(at.writer.reply(), "+OK\r\n");
  EXPECT_EQ(at.state(), "no-failover");
}

TEST(Failover, hands_over_once_the_replica_has_everything) {
  Handing at;
  EXPECT_EQ(at.fail_over(), "+OK\r\n");
  at.confirm_all();
  WireClient link = at.asked();
  EXPECT_EQ(at.state(), "failover-in-progress");
  at.writer.send(encode({"SET", "k", "2"}));
  link.send("+CONTINUE " + new_id + "\r\n");
  EXPECT_EQ(at.writer.reply(), "-READONLY You can't write against a read only replica.\r\n");
  EXPECT_EQ(at.state(), "no-failover");
  EXPECT_EQ(at.role(), "slave");
  EXPECT_EQ(fact(at.client, "replication", "master_replid"), new_id);
  EXPECT_EQ(fact(at.client, "replication", "master_replid2"), at.replica.id);
}

TEST(Failover, that_is_refused_leaves_the_primary_one) {
  Handing at;
  at.fail_over();
  at.writer.send(encode({"SET", "k", "2"}));
  at.confirm_all();
  WireClient link = at.asked();
  link.send("-ERR not now\r\n");
  EXPECT_EQ(at.writer.reply(), "+OK\r\n");
  EXPECT_EQ(at.role(), "master");
  HandReplica again(at.server);
  const std::string answer = again.psync(at.replica.id, std::to_string(at.replica.offset + 1));
  EXPECT_TRUE(answer.starts_with("+CONTINUE")) << answer;
}

TEST(Failover, ends_when_no_replica_has_everything_in_time) {
  Handing at;
  EXPECT_EQ(at.fail_over({"TIMEOUT", "1"}), "+OK\r\n");
  at.await_state("no-failover");
  EXPECT_EQ(at.client.call({"SET", "k", "2"}), "+OK\r\n");
}

// It would stand in the configuration file.
TEST(Failover, goes_to_no_replica_whose_address_cannot_be_one) {
  RunningServer server;
  WireClient client = server.connect();
  HandReplica replica(server, "a\nrequirepass b");
  replica.follow();
  EXPECT_EQ(client.call({"FAILOVER", "TIMEOUT", "1"}), "+OK\r\n");
  replica.take(asks_for_confirmation);
  replica.confirm();
  while (fact(client, "replication", "master_failover_state") != "no-failover") std::this_thread::yield();
  EXPECT_EQ(fact(client, "replication", "role"), "master");
}

TEST(Failover, by_force_hands_over_to_a_replica_that_lags) {
  Handing at;
  EXPECT_EQ(at.fail_over({"FORCE", "TIMEOUT", "1"}), "+OK\r\n");
  WireClient link = at.target.introduced();
  link.through("FAILOVER\r\n");
  link.send("+CONTINUE " + new_id + "\r\n");
  at.await_state("no-failover");
  EXPECT_EQ(at.role(), "slave");
}

// It may have taken over: a primary again, this server would be the second one.
TEST(Failover, whose_answer_is_lost_is_asked_about_again) {
  Handing at;
  at.fail_over();
  at.confirm_all();
  at.asked().close();
  WireClient again = at.asked();
  again.send("-ERR PSYNC FAILOVER can't be sent to a master.\r\n");
  WireClient link = at.target.introduced();
  EXPECT_EQ(at.state(), "failover-in-progress");
  link.through("PSYNC\r\n");
  link.send("+CONTINUE " + new_id + "\r\n");
  at.await_state("no-failover");
  EXPECT_EQ(at.role(), "slave");
}

TEST(Failover, to_a_replica_that_cannot_be_reached_ends) {
  Settings settings = quiet_settings();
  settings.repl_timeout_s = 2;
  Handing at(std::move(settings));
  at.target.stop_listening();
  at.fail_over();
  at.confirm_all();
  at.await_state("no-failover");
  EXPECT_EQ(at.role(), "master");
  EXPECT_EQ(at.client.call({"SET", "k", "2"}), "+OK\r\n");
}

TEST(Failover, promotes_a_replica_that_its_primary_asks) {
  RunningServer primary;
  RunningServer replica;
  WireClient primarys = primary.connect();
  WireClient replicas = replica.connect();
  EXPECT_EQ(replicas.call({"REPLICAOF", primary.path(), "0"}), "+OK\r\n");
  primarys.call({"SET", "k", "1"});
  await_replicas(primarys);
  const std::string id = fact(primarys, "replication", "master_replid");
  const std::string next =
      std::to_string(std::stoll(fact(replicas, "replication", "master_repl_offset")) + 1);
  EXPECT_EQ(primary.connect().call({"PSYNC", id, next, "FAILOVER"}),
            "-ERR PSYNC FAILOVER can't be sent to a master.\r\n");
  EXPECT_EQ(replica.connect().call({"PSYNC", new_id, next, "FAILOVER"}),
            "-ERR PSYNC FAILOVER replid must match my replid.\r\n");
  EXPECT_EQ(fact(replicas, "replication", "role"), "slave");
  WireClient asks = replica.connect();
  EXPECT_EQ(asks.call({"REPLCONF", "capa", "psync2"}), "+OK\r\n");
  asks.send(encode({"PSYNC", id, next, "FAILOVER"}));
  const std::string answer = asks.through("\r\n");
  EXPECT_EQ(answer, "+CONTINUE " + fact(replicas, "replication", "master_replid") + "\r\n");
  EXPECT_EQ(fact(replicas, "replication", "role"), "master");
  EXPECT_EQ(replicas.call({"SET", "k", "2"}), "+OK\r\n");
}

}  // namespace
}  // namespace weir::kv::testing
