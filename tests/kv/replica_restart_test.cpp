// A stopped replica keeps a snapshot, and continues from there after its restart.
#include <gtest/gtest.h>

#include "tests/kv/program.hpp"
#include "tests/kv/replication_facts.hpp"
#include "tests/kv/replication_load.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

Settings primary_settings() {
  Settings settings = quiet_settings();
  settings.enable_debug_command = 1;
  return settings;
}

class Replica {
 public:
  explicit Replica(std::string primary) : primary_(std::move(primary)) { start(); }

  void start(std::vector<std::string> more = {}) {
    std::vector<std::string> words{
        "--port",       "0",           "--unixsocket",  folder_.file("s"),        "--dir",
        folder_.path(), "--replicaof", primary_ + " 0", "--enable-debug-command", "yes"};
    words.insert(words.end(), more.begin(), more.end());
    program_ = std::make_unique<Program>(std::move(words));
    EXPECT_TRUE(program_->prints("Ready to accept connections"));
  }
  void end_with(const std::string& words) {
    connect().send(words + "\r\n");
    EXPECT_EQ(program_->exit_code(), 0);
  }
  WireClient connect() const { return WireClient::unix_socket(folder_.file("s")); }

 private:
  ScratchFolder folder_;
  std::string primary_;
  std::unique_ptr<Program> program_;
};

void change(WireClient& primary, ReplicationLoad& load) {
  for (int i = 0; i < 300; ++i) load.step(primary);
}

TEST(ReplicaThatWasStopped, asks_for_what_it_missed) {
  RunningServer primary(primary_settings());
  WireClient primarys = primary.connect();
  ReplicationLoad load(71);
  change(primarys, load);
  Replica replica(primary.path());
  for (int i = 0; i < 3; ++i) {
    change(primarys, load);
    await_replicas(primarys);
    replica.end_with("SHUTDOWN SAVE");
    change(primarys, load);
    replica.start();
    await_replicas(primarys);
    WireClient replicas = replica.connect();
    EXPECT_EQ(state_seen(replicas), state_seen(primarys));
  }
  EXPECT_EQ(fact(primarys, "stats", "sync_full"), "1");
  EXPECT_EQ(fact(primarys, "stats", "sync_partial_ok"), "3");
}

// Only the primary decides what expired while the replica was away; it may have changed the expiry before.
TEST(ReplicaThatWasStopped, keeps_keys_whose_time_is_past_until_the_primary_says_so) {
  RunningServer primary(primary_settings());
  WireClient primarys = primary.connect();
  Replica replica(primary.path());
  await_replicas(primarys);
  primarys.call({"SET", "kept", "1", "PX", "1000000"});
  primarys.call({"SET", "gone", "1", "PXAT", "1"});
  primarys.call({"SET", "short", "1", "PX", "30"});
  await_replicas(primarys);
  replica.connect().call({"SAVE"});
  replica.end_with("SHUTDOWN NOSAVE");
  primarys.call({"PERSIST", "kept"});
  while (primarys.call({"GET", "short"}) != "$-1\r\n") std::this_thread::yield();
  replica.start();
  await_replicas(primarys);
  WireClient replicas = replica.connect();
  EXPECT_EQ(state_seen(replicas), state_seen(primarys));
  EXPECT_EQ(fact(primarys, "stats", "sync_partial_ok"), "1");
}

TEST(ReplicaThatWasStopped, begins_anew_where_the_primary_no_longer_has_what_it_missed) {
  Settings settings = primary_settings();
  settings.repl_backlog_size = 100'000;
  RunningServer primary(std::move(settings));
  WireClient primarys = primary.connect();
  Replica replica(primary.path());
  await_replicas(primarys);
  replica.end_with("SHUTDOWN SAVE");
  for (int i = 0; i < 10; ++i) primarys.call({"SET", std::to_string(i), std::string(100'000, 'x')});
  replica.start();
  await_replicas(primarys);
  EXPECT_EQ(replica.connect().call({"DBSIZE"}), ":10\r\n");
  EXPECT_EQ(fact(primarys, "stats", "sync_full"), "2");
}

// The replica's own changes are in no history of the primary.
TEST(ReplicaThatWasStopped, begins_anew_when_it_had_taken_over_meanwhile) {
  RunningServer primary(primary_settings());
  WireClient primarys = primary.connect();
  Replica replica(primary.path());
  await_replicas(primarys);
  replica.connect().call({"REPLICAOF", "NO", "ONE"});
  replica.connect().call({"SET", "own", "1"});
  replica.end_with("SHUTDOWN SAVE");
  replica.start();
  await_replicas(primarys);
  EXPECT_EQ(replica.connect().call({"GET", "own"}), "$-1\r\n");
  EXPECT_EQ(fact(primarys, "stats", "sync_full"), "2");
}

}  // namespace
}  // namespace weir::kv::testing
