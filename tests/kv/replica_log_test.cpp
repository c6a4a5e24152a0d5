// The append-only log of a replica: after a restart the server has the same data.
#include "tests/kv/aof.hpp"
#include "tests/kv/replication_facts.hpp"
#include "tests/kv/replication_load.hpp"

namespace weir::kv::testing {
namespace {

std::string state_after_start(const std::string& folder) {
  Settings settings = quiet_settings();
  settings.appendonly = true;
  settings.dir = folder;
  RunningServer again(std::move(settings));
  return state_of(again);
}

void await_base(RunningServer& server) {
  while (server.run([](Server& s) { return s.append_only->state().rewrites; }) == 0) tick_log(server, 0);
}

// A primary with some data, and a replica with other data, which keeps a log.
struct LoggedPair {
  explicit LoggedPair(aof::Sync sync = aof::Sync::always) : replica(keeping(folder, sync), disk.disk()) {
    replicas.call({"SET", "old", "1"});
    primarys.call({"SET", "n", "1"});
    primarys.call(
        {"FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 1 end)"});
  }
  void follow() {
    EXPECT_EQ(replicas.call({"REPLICAOF", primary.path(), "0"}), "+OK\r\n");
    await_replicas(primarys);
  }

  ScratchFolder folder;
  BadDisk disk;
  RunningServer primary, replica;
  WireClient primarys = primary.connect();
  WireClient replicas = replica.connect();
};

TEST(ReplicaLog, has_what_came_from_the_primary) {
  std::string before;
  LoggedPair servers;
  servers.follow();
  ReplicationLoad load(31, ReplicationLoad::Commands::all);
  for (int i = 0; i < 300; ++i) load.step(servers.primarys);
  await_base(servers.replica);
  for (int i = 0; i < 300; ++i) load.step(servers.primarys);
  await_replicas(servers.primarys);
  const ScratchFolder copy;
  servers.replica.run([&](Server&) {
    servers.disk.copy_what_is_synced(servers.folder.file("appendonlydir"), copy.file("appendonlydir"));
  });
  EXPECT_EQ(state_after_start(copy.path()), state_of(servers.replica));
  EXPECT_EQ(state_of(servers.replica), state_of(servers.primary));
}

// Once a second the replica reports how much of the stream is on its disk.
TEST(ReplicaLog, on_the_disk_ends_the_wait_of_the_primarys_client) {
  for (const aof::Sync sync : {aof::Sync::always, aof::Sync::everysec}) {
    LoggedPair servers(sync);
    servers.follow();
    await_base(servers.replica);
    servers.primarys.call({"SET", "k", "1"});
    servers.primarys.send(encode({"WAITAOF", "0", "1", "0"}));
    while (servers.primary.run([](Server& s) { return s.blocking.size(); }) != 0) {
      tick_log(servers.replica, 1000);
      pass_ms(servers.replica, 1000);
    }
    EXPECT_EQ(servers.primarys.reply(), "*2\r\n:0\r\n:1\r\n");
    const ScratchFolder copy;
    servers.replica.run([&](Server&) {
      servers.disk.copy_what_is_synced(servers.folder.file("appendonlydir"), copy.file("appendonlydir"));
    });
    EXPECT_EQ(state_after_start(copy.path()), state_of(servers.primary));
  }
}

// Until a base has the new data the log is that of the old data: never old data with the new data's changes.
TEST(ReplicaLog, is_that_of_the_old_data_until_all_of_the_new_is_in_it) {
  LoggedPair servers;
  const std::string old = state_of(servers.replica);
  servers.follow();
  for (int i = 0; i < 20; ++i) {
    servers.primarys.call({"INCR", "n"});
    await_replicas(servers.primarys);
    const ScratchFolder copy;
    const bool whole = servers.replica.run([&](Server& s) {
      servers.disk.copy_what_is_synced(servers.folder.file("appendonlydir"), copy.file("appendonlydir"));
      return s.append_only->state().rewrites > 0;
    });
    EXPECT_EQ(state_after_start(copy.path()), whole ? state_of(servers.replica) : old);
    if (i == 10) await_base(servers.replica);
  }
}

TEST(ReplicaLog, that_cannot_be_kept_holds_the_stream_back) {
  LoggedPair servers;
  servers.follow();
  await_base(servers.replica);
  servers.disk.write_error = ENOSPC;
  const std::string value(10'000, 'x');
  for (int i = 0; i < 300; ++i) servers.primarys.call({"SET", "k" + std::to_string(i), value});
  while (servers.replica.run([](Server& s) { return s.append_only->refusal(); }).empty()) {
    std::this_thread::yield();
  }
  // Two turns of the link, because one may have begun already.
  for (int i = 0; i < 2; ++i) servers.primarys.call({"SET", "l", value});
  EXPECT_LT(servers.replica.run([](Server& s) { return s.append_only->writer().gathered_bytes(); }),
            1'500'000u);
  EXPECT_NE(servers.replicas.call({"DBSIZE"}), ":302\r\n");
  servers.disk.write_error = 0;
  tick_log(servers.replica, 0);
  await_replicas(servers.primarys);
  EXPECT_EQ(state_of(servers.replica), state_of(servers.primary));
  const ScratchFolder copy;
  servers.replica.run([&](Server&) {
    servers.disk.copy_what_is_synced(servers.folder.file("appendonlydir"), copy.file("appendonlydir"));
  });
  EXPECT_EQ(state_after_start(copy.path()), state_of(servers.primary));
}

TEST(ReplicaLog, begins_anew_although_it_is_being_rewritten) {
  LoggedPair servers(aof::Sync::everysec);
  for (int i = 0; i < 5000; ++i) servers.replicas.call({"SET", "old" + std::to_string(i), "x"});
  servers.replica.run([](Server& s) { static_cast<void>(s.append_only->rewrite()); });
  servers.follow();
  servers.primarys.call({"INCR", "n"});
  await_replicas(servers.primarys);
  await_base(servers.replica);
  while (servers.replica.run([](Server& s) { return s.append_only->rewrite_scheduled(); })) {
    tick_log(servers.replica, 0);
  }
  await_rewrite(servers.replica);
  servers.replica.run([](Server& s) { return s.append_only->turn_off(); });
  EXPECT_EQ(state_after_start(servers.folder.path()), state_of(servers.primary));
}

}  // namespace
}  // namespace weir::kv::testing
