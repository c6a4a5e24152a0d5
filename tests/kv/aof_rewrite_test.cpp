// Rewriting the append-only log while clients continue, and starting a log when there is data.
#include "kv/persistence/snapshots.hpp"
#include "tests/kv/aof.hpp"

namespace weir::kv::testing {
namespace {

namespace fs = std::filesystem;

void fill(WireClient& client, int keys) {
  std::string batch;
  for (int i = 0; i < keys; ++i) batch += encode({"SET", "key:" + std::to_string(i), std::string(50, 'x')});
  client.send(batch);
  for (int i = 0; i < keys; ++i) client.reply();
}

// Advances the log's clock until it was rewritten that many times.
void await_rewrites(RunningServer& server, std::uint64_t count) {
  while (server.run([](Server& s) { return s.append_only->state().rewrites; }) < count) tick_log(server, 1);
}

std::string state_after_restart(const ScratchFolder& folder) {
  RunningServer again(keeping(folder));
  return state_of(again);
}

// Effects before and after the moment of the base: none is lost, and none counts twice.
TEST(AofRewrite, loses_and_repeats_nothing_of_what_happens_meanwhile) {
  const ScratchFolder folder;
  std::string before;
  {
    RunningServer server(keeping(folder, aof::Sync::no));
    WireClient client = server.connect();
    fill(client, 20'000);
    client.send(encode({"INCR", "n"}) + encode({"BGREWRITEAOF"}) + encode({"INCR", "n"}) +
                encode({"RPUSH", "list", "a"}) + encode({"BGREWRITEAOF"}) + encode({"SWAPDB", "0", "1"}) +
                encode({"INCR", "n"}) + encode({"INFO", "persistence"}));
    EXPECT_EQ(client.reply(), ":1\r\n");
    EXPECT_EQ(client.reply(), "+Background append only file rewriting started\r\n");
    EXPECT_EQ(client.reply(), ":2\r\n");
    client.reply();
    EXPECT_EQ(client.reply(), "-ERR Background append only file rewriting already in progress\r\n");
    client.reply();
    client.reply();
    EXPECT_NE(client.reply().find("aof_rewrite_in_progress:1"), std::string::npos);
    for (int i = 0; i < 2000; ++i) client.call({"APPEND", "key:" + std::to_string(i), "y"});
    await_rewrite(server);
    client.call({"INCR", "n"});
    const std::string info = client.call({"INFO", "persistence"});
    EXPECT_NE(info.find("aof_last_bgrewrite_status:ok"), std::string::npos);
    EXPECT_NE(info.find("aof_rewrites:1\r\n"), std::string::npos);
    before = state_of(server);
  }
  EXPECT_EQ(text_of(log_file(folder, "manifest")),
            "file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type h\n"
            "file appendonly.aof.2.incr.aof seq 2 type i\n");
  EXPECT_FALSE(fs::exists(log_file(folder, "1.incr.aof"))) << "what the base replaces is deleted";
  EXPECT_EQ(state_after_restart(folder), before);
}

TEST(AofRewrite, in_a_transaction_begins_behind_it) {
  const ScratchFolder folder;
  std::string before;
  {
    RunningServer server(keeping(folder));
    WireClient client = server.connect();
    client.send(encode({"MULTI"}) + encode({"INCR", "n"}) + encode({"BGREWRITEAOF"}) + encode({"INCR", "n"}) +
                encode({"EXEC"}));
    for (int i = 0; i < 4; ++i) client.reply();
    EXPECT_EQ(client.reply(), "*3\r\n:1\r\n+Background append only file rewriting scheduled\r\n:2\r\n");
    await_rewrites(server, 1);
    before = state_of(server);
  }
  EXPECT_EQ(state_after_restart(folder), before);
}

// Databases take part in one walk at a time.
TEST(AofRewrite, waits_for_a_snapshot) {
  const ScratchFolder folder;
  RunningServer server(keeping(folder, aof::Sync::no));
  WireClient client = server.connect();
  fill(client, 10'000);
  client.send(encode({"BGSAVE"}) + encode({"BGREWRITEAOF"}) + encode({"INFO", "persistence"}));
  EXPECT_EQ(client.reply(), "+Background saving started\r\n");
  EXPECT_EQ(client.reply(), "+Background append only file rewriting scheduled\r\n");
  EXPECT_NE(client.reply().find("aof_rewrite_scheduled:1"), std::string::npos);
  await_rewrites(server, 1);
  EXPECT_NE(client.call({"INFO", "persistence"}).find("rdb_saves:1\r\n"), std::string::npos);
}

TEST(AofRewrite, lets_a_snapshot_wait) {
  const ScratchFolder folder;
  RunningServer server(keeping(folder, aof::Sync::no));
  WireClient client = server.connect();
  fill(client, 10'000);
  client.send(encode({"BGREWRITEAOF"}) + encode({"BGSAVE"}) + encode({"SAVE"}) +
              encode({"BGSAVE", "SCHEDULE"}));
  EXPECT_EQ(client.reply(), "+Background append only file rewriting started\r\n");
  EXPECT_EQ(client.reply().substr(0, 43), "-ERR Another child process is active (AOF?)");
  EXPECT_EQ(client.reply(), "-ERR The log is being rewritten: try again later\r\n");
  EXPECT_EQ(client.reply(), "+Background saving scheduled\r\n");
  await_rewrites(server, 1);
  while (server.run([](Server& s) { return s.snapshots->look_at_clock(), s.snapshots->state().saves; }) == 0)
    std::this_thread::yield();
}

TEST(AofRewrite, happens_by_itself_when_the_log_has_grown) {
  const ScratchFolder folder;
  Settings settings = keeping(folder, aof::Sync::no);
  settings.auto_aof_rewrite_min_size = 10'000;
  RunningServer server(settings);
  WireClient client = server.connect();
  for (int i = 0; i < 100; ++i) client.call({"SET", "k", std::string(50, 'x')});
  tick_log(server);
  EXPECT_FALSE(server.run([](Server& s) { return s.append_only->rewriting(); })) << "it is small";
  for (int i = 0; i < 100; ++i) client.call({"SET", "k", std::string(50, 'x')});
  await_rewrites(server, 1);
  EXPECT_LT(server.run([](Server& s) { return s.append_only->size(); }), 10'000u);
}

TEST(AofRewrite, that_fails_leaves_the_log_as_it_was) {
  const ScratchFolder folder;
  std::string before;
  {
    RunningServer server(keeping(folder, aof::Sync::no));
    WireClient client = server.connect();
    fill(client, 100);
    fs::create_directory(log_file(folder, "1.base.rdb"));  // where the base should go
    client.call({"BGREWRITEAOF"});
    await_rewrite(server);
    EXPECT_NE(client.call({"INFO", "persistence"}).find("aof_last_bgrewrite_status:err"), std::string::npos);
    EXPECT_EQ(client.call({"SET", "k", "v"}), "+OK\r\n") << "the log is kept all the same";
    before = state_of(server);
  }
  EXPECT_EQ(state_after_restart(folder), before);
}

TEST(AofTurnedOn, while_there_is_data_keeps_that_too) {
  const ScratchFolder folder;
  std::string before;
  {
    Settings settings = keeping(folder);
    settings.appendonly = false;
    RunningServer server(settings);
    WireClient client = server.connect();
    fill(client, 5000);
    client.send(encode({"INCR", "n"}) + encode({"CONFIG", "SET", "appendonly", "yes"}) +
                encode({"INCR", "n"}));
    client.reply();
    EXPECT_EQ(client.reply(), "+OK\r\n");
    client.reply();
    EXPECT_EQ(client.call({"WAITAOF", "1", "0", "0"}), "*2\r\n:1\r\n:0\r\n") << "when the base is there";
    EXPECT_NE(text_of(log_file(folder, "manifest")).find("base.rdb"), std::string::npos);
    before = state_of(server);
  }
  EXPECT_EQ(state_after_restart(folder), before);
}

TEST(AofTurnedOn, is_whole_if_the_server_ends_at_once) {
  const ScratchFolder folder;
  std::string before;
  {
    Settings settings = keeping(folder);
    settings.appendonly = false;
    RunningServer server(std::move(settings));
    WireClient client = server.connect();
    fill(client, 100);
    before = state_of(server);
    const bool begun = server.run([](Server& s) {
      const bool on = s.append_only->turn_on().has_value();
      s.append_only->end_as_planned();
      return on;
    });
    EXPECT_TRUE(begun);
  }
  EXPECT_EQ(state_after_restart(folder), before);
}

TEST(AofTurnedOn, again_begins_anew) {
  const ScratchFolder folder;
  std::string before;
  {
    RunningServer server(keeping(folder));
    WireClient client = server.connect();
    client.call({"SET", "a", "1"});
    client.call({"CONFIG", "SET", "appendonly", "no"});
    client.call({"SET", "a", "2"});
    client.call({"CONFIG", "SET", "appendonly", "yes"});
    await_rewrite(server);
    client.call({"APPEND", "a", "3"});
    before = state_of(server);
  }
  EXPECT_EQ(state_after_restart(folder), before);
}

TEST(AofTurnedOn, in_a_transaction_that_changed_something_is_refused) {
  const ScratchFolder folder;
  RunningServer server(keeping(folder));
  WireClient client = server.connect();
  client.call({"CONFIG", "SET", "appendonly", "no"});
  RecordedEffects effects(server);
  client.send(encode({"MULTI"}) + encode({"INCR", "n"}) + encode({"CONFIG", "SET", "appendonly", "yes"}) +
              encode({"EXEC"}));
  for (int i = 0; i < 3; ++i) client.reply();
  EXPECT_NE(client.reply().find("while the server loads or a transaction runs"), std::string::npos);
}

// As in Redis: the next start with --appendonly yes begins with it.
TEST(AofRewrite, of_a_server_without_a_log_writes_one_of_that_moment) {
  const ScratchFolder folder;
  Settings without = keeping(folder);
  without.appendonly = false;
  without.enable_debug_command = 1;
  std::string before;
  for (int round = 1; round <= 2; ++round) {
    RunningServer server(without);
    WireClient client = server.connect();
    fill(client, 1000 * round);
    before = state_of(server);
    EXPECT_EQ(client.call({"BGREWRITEAOF"}), "+Background append only file rewriting started\r\n");
    await_rewrite(server);
    client.call({"SET", "later", "1"});
    const std::string info = client.call({"INFO", "persistence"});
    EXPECT_NE(info.find("aof_enabled:0\r\n"), std::string::npos);
    EXPECT_NE(info.find("aof_rewrites:1\r\n"), std::string::npos);
    EXPECT_NE(info.find("aof_last_bgrewrite_status:ok"), std::string::npos);
    EXPECT_EQ(client.call({"DEBUG", "LOADAOF"}), "+OK\r\n");
    EXPECT_EQ(state_of(server), before);
  }
  EXPECT_FALSE(fs::exists(log_file(folder, "1.base.rdb"))) << "the second one replaced it";
  EXPECT_EQ(state_after_restart(folder), before);
}

TEST(AofRewrite, of_a_server_without_a_log_waits_for_a_snapshot) {
  const ScratchFolder folder;
  Settings without = keeping(folder);
  without.appendonly = false;
  RunningServer server(without);
  WireClient client = server.connect();
  fill(client, 20'000);
  client.send(encode({"BGSAVE"}) + encode({"BGREWRITEAOF"}));
  client.reply();
  EXPECT_EQ(client.reply(), "+Background append only file rewriting scheduled\r\n");
  await_rewrites(server, 1);
  EXPECT_TRUE(fs::exists(log_file(folder, "1.base.rdb")));
}

TEST(AofRewrite, of_a_server_without_a_log_leaves_nothing_when_the_disk_is_full) {
  const ScratchFolder folder;
  BadDisk disk;
  Settings without = keeping(folder);
  without.appendonly = false;
  RunningServer server(without, disk.disk());
  WireClient client = server.connect();
  fill(client, 10);
  disk.write_error = ENOSPC;
  client.call({"BGREWRITEAOF"});
  await_rewrite(server);
  EXPECT_NE(client.call({"INFO", "persistence"}).find("aof_last_bgrewrite_status:err"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(folder.file("appendonlydir")));
  EXPECT_EQ(client.call({"SET", "k", "1"}), "+OK\r\n");
  disk.write_error = 0;
  EXPECT_EQ(client.call({"BGREWRITEAOF"}), "+Background append only file rewriting started\r\n");
  await_rewrite(server);
  EXPECT_TRUE(fs::exists(log_file(folder, "1.base.rdb")));
}

TEST(AofRewrite, of_a_server_without_a_log_ends_when_the_log_begins) {
  const ScratchFolder folder;
  Settings without = keeping(folder);
  without.appendonly = false;
  std::string before;
  {
    RunningServer server(without);
    WireClient client = server.connect();
    fill(client, 20'000);
    client.send(encode({"BGREWRITEAOF"}) + encode({"CONFIG", "SET", "appendonly", "yes"}) +
                encode({"SET", "later", "1"}));
    client.reply();
    EXPECT_EQ(client.reply(), "+OK\r\n");
    EXPECT_EQ(client.reply(), "+OK\r\n");
    await_rewrite(server);
    before = state_of(server);
  }
  EXPECT_EQ(state_after_restart(folder), before);
}

}  // namespace
}  // namespace weir::kv::testing
