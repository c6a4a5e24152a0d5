// A replica over RDMA, plain and with TLS: the snapshot, the stream, cut links, and the end.
#include <gtest/gtest.h>

#include "tests/kv/certificates.hpp"
#include "tests/kv/program.hpp"
#include "tests/kv/rdma_client.hpp"
#include "tests/kv/replication_facts.hpp"
#include "tests/kv/replication_load.hpp"

namespace weir::kv::testing {
namespace {

struct Transport {
  const char* kind;
  bool tls;
  friend void PrintTo(const Transport& transport, std::ostream* out) { *out << transport.kind; }
};

Settings primary_settings() {
  Settings settings = with_certificates(rdma_settings());
  settings.rdma_tls_port = any_port;
  settings.enable_debug_command = 1;
  return settings;
}

Settings replica_settings(bool tls) {
  Settings settings = with_certificates(quiet_settings());
  settings.rdma_provider = 1;
  settings.rdma_replication = true;
  settings.tls_replication = tls;
  settings.enable_debug_command = 1;
  return settings;
}

void follow(RunningServer& replica, std::uint16_t port, const char* host = "127.0.0.1") {
  EXPECT_EQ(replica.connect().call({"REPLICAOF", host, std::to_string(port)}), "+OK\r\n");
}

void await_log(RunningServer& server, const std::string& text) {
  while (server.log().find(text) == std::string::npos) std::this_thread::yield();
}

class RdmaReplication : public ::testing::TestWithParam<Transport> {
 protected:
  void expect_equal() {
    await_replicas(primarys);
    EXPECT_EQ(state_seen(replicas), state_seen(primarys));
  }

  RunningServer primary{primary_settings()};
  RunningServer replica{replica_settings(GetParam().tls)};
  WireClient primarys = primary.connect();
  WireClient replicas = replica.connect();
};

INSTANTIATE_TEST_SUITE_P(Over, RdmaReplication,
                         ::testing::Values(Transport{"rdma", false}, Transport{"rdma+tls", true}),
                         [](const auto& row) { return row.param.tls ? "rdma_tls" : "rdma"; });

TEST_P(RdmaReplication, has_all_data_and_goes_on_after_a_cut) {
  primarys.call({"SET", "large", std::string(3'000'000, 'x')});
  ReplicationLoad load(51);
  for (int i = 0; i < 200; ++i) load.step(primarys);
  follow(replica, port_of(primary, GetParam().kind));
  for (int i = 0; i < 500; ++i) load.step(primarys);
  primarys.call({"SET", "large", std::string(3'000'000, 'y')});
  expect_equal();
  EXPECT_EQ(fact(replicas, "replication", "master_link_transport"), GetParam().kind);
  EXPECT_TRUE(fact(primarys, "replication", "slave0").ends_with(std::string(",link=") + GetParam().kind));
  EXPECT_EQ(primarys.call({"CLIENT", "KILL", "TYPE", "replica"}), ":1\r\n");
  for (int i = 0; i < 200; ++i) load.step(primarys);
  expect_equal();
  EXPECT_EQ(fact(primarys, "stats", "sync_full"), "1");
  EXPECT_EQ(fact(primarys, "stats", "sync_partial_ok"), "1");
}

// More than all buffers on the way hold.
TEST_P(RdmaReplication, sends_a_snapshot_of_many_buffers) {
  for (int i = 0; i < 40; ++i) {
    std::string batch;
    for (int j = 0; j < 100; ++j)
      batch += encode({"SET", std::to_string(i * 100 + j), std::string(5000, 'x')});
    primarys.send(batch);
    for (int j = 0; j < 100; ++j) primarys.reply();
  }
  follow(replica, port_of(primary, GetParam().kind));
  expect_equal();
}

TEST_P(RdmaReplication, may_be_told_to_follow_and_not_to_at_any_moment) {
  const std::string port = std::to_string(port_of(primary, GetParam().kind));
  for (int i = 0; i < 20; ++i) {
    primarys.call({"INCR", "n"});
    EXPECT_EQ(replicas.call({"REPLICAOF", "127.0.0.1", port}), "+OK\r\n");
    EXPECT_EQ(replicas.call({"REPLICAOF", "NO", "ONE"}), "+OK\r\n");
  }
  replicas.call({"REPLICAOF", "127.0.0.1", port});
  expect_equal();
}

TEST(FollowingOverRdma, finds_the_primary_by_name) {
  RunningServer primary(primary_settings());
  RunningServer replica(replica_settings(false));
  follow(replica, port_of(primary, "rdma"), "localhost");
  WireClient primarys = primary.connect();
  await_replicas(primarys);
}

TEST(FollowingOverRdma, follows_nobody_whom_its_authorities_do_not_know) {
  RunningServer primary(primary_settings());
  Settings settings = replica_settings(true);
  settings.tls_ca_cert_file = certificates().certificate("stranger");
  RunningServer replica(std::move(settings));
  follow(replica, port_of(primary, "rdma+tls"));
  await_log(replica, "certificate verify failed");
  WireClient client = replica.connect();
  EXPECT_EQ(fact(client, "replication", "master_link_status"), "down");
}

TEST(FollowingOverRdma, says_why_it_cannot_and_follows_once_it_can) {
  RunningServer primary(primary_settings());
  RunningServer replica(replica_settings(false));
  WireClient primarys = primary.connect();
  const std::string port = std::to_string(port_of(primary, "rdma"));
  ASSERT_EQ(primarys.call({"CONFIG", "SET", "rdma-port", "0"}), "+OK\r\n");
  replica.connect().call({"REPLICAOF", "127.0.0.1", port});
  await_log(replica, "cannot connect: ");
  ASSERT_EQ(primarys.call({"CONFIG", "SET", "rdma-port", port}), "+OK\r\n");
  await_replicas(primarys);
}

// As a user does after finding out that the hosts have no RDMA.
TEST(FollowingOverRdma, goes_back_to_tcp_when_told_so) {
  RunningServer primary(primary_settings());
  RunningServer replica(replica_settings(false));
  WireClient primarys = primary.connect();
  WireClient replicas = replica.connect();
  follow(replica, port_of(primary, "rdma"));
  await_replicas(primarys);
  EXPECT_EQ(replicas.call({"CONFIG", "SET", "rdma-replication", "no"}), "+OK\r\n");
  EXPECT_EQ(fact(replicas, "replication", "master_link_transport"), "rdma") << "it is for the next link";
  follow(replica, port_of(primary, "tcp"));
  while (fact(replicas, "replication", "master_link_status") != "up") std::this_thread::yield();
  EXPECT_EQ(fact(replicas, "replication", "master_link_transport"), "tcp");
  EXPECT_EQ(fact(primarys, "stats", "sync_partial_ok"), "1");
}

// A server in its own process, whose RDMA port stays the same after a restart.
class Node {
 public:
  explicit Node(std::vector<std::string> more = {}) : more_(std::move(more)) {
    start();
    WireClient client = connect();
    port_ = fact(client, "rdma", "rdma_port");
  }
  void start() {
    std::vector<std::string> words{
        "--port",      "0",   "--unixsocket", folder_.file("s"), "--dir",           folder_.path(),
        "--rdma-port", port_, "--rdma-bind",  "127.0.0.1",       "--rdma-provider", "weir"};
    words.insert(words.end(), more_.begin(), more_.end());
    program_ = std::make_unique<Program>(std::move(words));
    EXPECT_TRUE(program_->prints("Ready to accept connections"));
  }
  void kill() { program_.reset(); }
  void signal(int number) const { program_->signal(number); }
  WireClient connect() const { return WireClient::unix_socket(folder_.file("s")); }
  const std::string& port() const { return port_; }

 private:
  ScratchFolder folder_;
  std::vector<std::string> more_;
  std::string port_ = "-1";
  std::unique_ptr<Program> program_;
};

TEST(FollowingOverRdma, serves_on_when_the_primary_is_killed_and_follows_it_when_it_is_back) {
  Node primary;
  RunningServer replica(replica_settings(false));
  WireClient replicas = replica.connect();
  {
    WireClient client = primary.connect();
    client.call({"SET", "a", "1"});
    replicas.call({"REPLICAOF", "127.0.0.1", primary.port()});
    await_replicas(client);
  }
  primary.kill();
  while (fact(replicas, "replication", "master_link_status") != "down") std::this_thread::yield();
  EXPECT_EQ(replicas.call({"GET", "a"}), "$1\r\n1\r\n");
  primary.start();
  WireClient client = primary.connect();
  client.call({"SET", "b", "2"});
  await_replicas(client);
  EXPECT_EQ(replicas.call({"GET", "b"}), "$1\r\n2\r\n");
  EXPECT_EQ(replicas.call({"GET", "a"}), "$-1\r\n") << "it began anew, without data";
}

// What waits for the replica is limited, and the primary does not wait.
TEST(FollowingOverRdma, holds_up_nobody_while_it_is_stopped) {
  Settings settings = primary_settings();
  settings.repl_backlog_size = 1 << 18;
  settings.replica_output.hard_bytes = 2 << 20;
  RunningServer primary(std::move(settings));
  WireClient primarys = primary.connect();
  Node replica({"--rdma-replication", "yes"});
  const std::string port = std::to_string(port_of(primary, "rdma"));
  ASSERT_EQ(replica.connect().call({"REPLICAOF", "127.0.0.1", port}), "+OK\r\n");
  await_replicas(primarys);
  replica.signal(SIGSTOP);
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(primarys.call({"SET", "k" + std::to_string(i), std::string(200'000, 'x')}), "+OK\r\n");
  EXPECT_EQ(fact(primarys, "replication", "connected_slaves"), "0");
  EXPECT_NE(primary.log().find("more waits for it than client-output-buffer-limit allows"),
            std::string::npos);
  EXPECT_LE(std::stoll(fact(primarys, "replication", "repl_backlog_histlen")), 1 << 20);
  replica.signal(SIGCONT);
  await_replicas(primarys);
  EXPECT_EQ(replica.connect().call({"DBSIZE"}), ":50\r\n");
  EXPECT_EQ(fact(primarys, "stats", "sync_full"), "2");
}

}  // namespace
}  // namespace weir::kv::testing
