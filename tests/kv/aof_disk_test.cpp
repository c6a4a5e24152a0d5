// When the append-only log reaches the disk, and what happens if it cannot: writes are refused until it can.
#include "tests/kv/aof.hpp"

namespace weir::kv::testing {
namespace {

TEST(Aof, with_always_is_on_the_disk_before_the_reply_leaves) {
  const ScratchFolder folder;
  BadDisk disk;
  RunningServer server(keeping(folder), disk.disk());
  WireClient client = server.connect();
  for (int i = 0; i < 10; ++i) {
    const std::uint64_t before = disk.syncs;
    client.call({"INCR", "n"});
    EXPECT_GT(disk.syncs, before);
  }
  const std::uint64_t before = disk.syncs;
  client.call({"GET", "n"});
  EXPECT_EQ(disk.syncs, before) << "a reader needs no disk";
}

// A client whose peer closes its side after its requests is answered outside the end of the round.
TEST(Aof, with_always_is_on_the_disk_before_the_last_reply_of_a_client_that_leaves) {
  const ScratchFolder folder;
  RunningServer server(keeping(folder));
  WireClient client = server.connect();
  client.send(encode({"SET", "k", "v"}));
  ::shutdown(client.fd(), SHUT_WR);
  EXPECT_EQ(client.until_closed(), "+OK\r\n");
  EXPECT_EQ(requests_in(log_file(folder, "1.incr.aof")), "SELECT 0;SET k v;");
}

TEST(Aof, with_always_one_sync_serves_all_clients_of_a_round) {
  constexpr std::size_t clients = 50;
  const ScratchFolder folder;
  BadDisk disk;
  RunningServer server(keeping(folder), disk.disk());
  std::vector<WireClient> all;
  for (std::size_t i = 0; i < clients; ++i) all.push_back(server.connect());
  for (WireClient& client : all) client.call({"PING"});
  const std::uint64_t before = disk.syncs;
  // All of them send requests while the server is busy.
  server.run([&](Server&) {
    for (WireClient& client : all) client.send(encode({"INCR", "n"}));
  });
  for (WireClient& client : all) client.reply();
  EXPECT_LE(disk.syncs - before, 3u);
}

TEST(Aof, with_everysec_and_no_does_not_sync_before_replies) {
  for (const aof::Sync sync : {aof::Sync::everysec, aof::Sync::no}) {
    const ScratchFolder folder;
    BadDisk disk;
    RunningServer server(keeping(folder, sync), disk.disk());
    WireClient client = server.connect();
    const std::uint64_t before = disk.syncs;
    for (int i = 0; i < 100; ++i) client.call({"INCR", "n"});
    EXPECT_LE(disk.syncs - before, 20u);
    EXPECT_NE(requests_in(log_file(folder, "1.incr.aof")), "") << "but it is written";
  }
}

TEST(Aof, that_cannot_be_written_refuses_writes_until_it_can) {
  for (const aof::Sync sync : {aof::Sync::always, aof::Sync::no}) {
    const ScratchFolder folder;
    BadDisk disk;
    std::string before;
    {
      RunningServer server(keeping(folder, sync), disk.disk());
      WireClient client = server.connect();
      client.call({"SET", "a", "1"});
      disk.write_error = ENOSPC;
      client.send(encode({"SET", "b", "2"}));
      if (sync == aof::Sync::always) {
        EXPECT_EQ(client.until_closed(), "") << "no reply may say that it is kept";
      } else {
        EXPECT_EQ(client.reply(), "+OK\r\n");
      }
      WireClient other = server.connect();
      const std::string refused = "-MISCONF Errors writing to the AOF file: No space left on device\r\n";
      EXPECT_EQ(other.call({"SET", "c", "3"}), refused);
      EXPECT_EQ(other.call({"PING"}), refused);
      EXPECT_EQ(other.call({"GET", "a"}), "$1\r\n1\r\n");
      EXPECT_NE(other.call({"EVAL", "return redis.call('set','c','3')", "0"}).find("MISCONF"),
                std::string::npos);
      EXPECT_NE(other.call({"INFO", "persistence"}).find("aof_last_write_status:err"), std::string::npos);
      disk.write_error = 0;
      server.run([](Server& s) { s.append_only->tick(); });
      EXPECT_EQ(other.call({"SET", "c", "3"}), "+OK\r\n");
      EXPECT_NE(other.call({"INFO", "persistence"}).find("aof_last_write_status:ok"), std::string::npos);
      before = state_of(server);
    }
    RunningServer again(keeping(folder));
    EXPECT_EQ(state_of(again), before);
  }
}

TEST(Aof, goes_on_behind_a_short_write) {
  const ScratchFolder folder;
  BadDisk disk;
  std::string before;
  {
    RunningServer server(keeping(folder), disk.disk());
    WireClient client = server.connect();
    disk.most = 7;
    client.call({"SET", "a", std::string(1000, 'x')});
    before = state_of(server);
  }
  RunningServer again(keeping(folder));
  EXPECT_EQ(state_of(again), before);
}

// The log's contents after a power failure.
void expect_kept(RunningServer& server, const BadDisk& disk, const ScratchFolder& folder,
                 const std::string& key, const std::string& value) {
  const ScratchFolder elsewhere;
  server.run([&](Server&) {
    disk.copy_what_is_synced(folder.file("appendonlydir"), elsewhere.file("appendonlydir"));
  });
  RunningServer again(keeping(elsewhere));
  EXPECT_EQ(again.connect().call({"GET", key}), "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n");
}

TEST(Aof, with_always_survives_a_loss_of_power_after_each_reply) {
  const ScratchFolder folder;
  BadDisk disk;
  RunningServer server(keeping(folder), disk.disk());
  WireClient client = server.connect();
  for (int i = 1; i <= 5; ++i) {
    client.call({"SET", "k", std::to_string(i)});
    expect_kept(server, disk, folder, "k", std::to_string(i));
  }
  // In the same round as a change of the file.
  client.send(encode({"SET", "k", "6"}) + encode({"BGREWRITEAOF"}) + encode({"SET", "k", "7"}));
  for (int i = 0; i < 3; ++i) client.reply();
  expect_kept(server, disk, folder, "k", "7");
  await_rewrite(server);
  expect_kept(server, disk, folder, "k", "7");
  client.send(encode({"SET", "k", "8"}) + encode({"WAITAOF", "1", "0", "0"}));
  client.reply();
  expect_kept(server, disk, folder, "k", "8");
  EXPECT_EQ(client.reply(), "*2\r\n:1\r\n:0\r\n");
}

TEST(Aof, with_everysec_survives_a_loss_of_power_from_its_next_sync_on) {
  const ScratchFolder folder;
  BadDisk disk;
  RunningServer server(keeping(folder, aof::Sync::everysec), disk.disk());
  WireClient client = server.connect();
  for (int i = 1; i <= 3; ++i) {
    client.call({"SET", "k", std::to_string(i)});
    tick_log(server);
    while (!server.run([](Server& s) { return s.append_only->synced(); })) std::this_thread::yield();
    expect_kept(server, disk, folder, "k", std::to_string(i));
  }
  client.call({"SET", "k", "4"});
  EXPECT_EQ(client.call({"WAITAOF", "1", "0", "0"}), "*2\r\n:1\r\n:0\r\n");
  expect_kept(server, disk, folder, "k", "4");
}

// After a failed fsync it is unknown what is on the disk, so the log is rewritten before writes continue.
TEST(Aof, whose_sync_failed_is_rewritten_before_writes_go_on) {
  for (const aof::Sync sync : {aof::Sync::always, aof::Sync::everysec}) {
    const ScratchFolder folder;
    BadDisk disk;
    RunningServer server(keeping(folder, sync), disk.disk());
    WireClient client = server.connect();
    client.call({"SET", "a", "1"});
    disk.sync_error = EIO;
    client.send(encode({"SET", "b", "2"}));
    if (sync == aof::Sync::always) {
      EXPECT_EQ(client.until_closed(), "");
    } else {
      EXPECT_EQ(client.reply(), "+OK\r\n");
      tick_log(server);
      while (server.run([](Server& s) { return s.append_only->refusal().empty(); }))
        std::this_thread::yield();
    }
    WireClient other = server.connect();
    EXPECT_EQ(other.call({"SET", "c", "3"}),
              "-MISCONF Errors writing to the AOF file: Input/output error\r\n");
    EXPECT_EQ(other.call({"GET", "b"}), "$1\r\n2\r\n");
    tick_log(server);
    EXPECT_NE(other.call({"INFO", "persistence"}).find("aof_last_bgrewrite_status:err"), std::string::npos);
    EXPECT_EQ(other.call({"SET", "c", "3"}).substr(0, 8), "-MISCONF");
    disk.sync_error = 0;
    tick_log(server, 6000);
    await_rewrite(server);
    EXPECT_EQ(other.call({"SET", "c", "3"}), "+OK\r\n");
    EXPECT_EQ(other.call({"WAITAOF", "1", "0", "0"}), "*2\r\n:1\r\n:0\r\n");
    EXPECT_NE(other.call({"INFO", "persistence"}).find("aof_last_bgrewrite_status:ok"), std::string::npos);
    expect_kept(server, disk, folder, "b", "2");
    expect_kept(server, disk, folder, "c", "3");
  }
}

TEST(Aof, that_cannot_be_synced_forgets_clients_that_gave_up_waiting) {
  const ScratchFolder folder;
  BadDisk disk;
  RunningServer server(keeping(folder, aof::Sync::no), disk.disk());
  WireClient client = server.connect();
  disk.sync_error = EIO;
  client.call({"SET", "k", "v"});
  for (int i = 0; i < 300; ++i) EXPECT_EQ(client.call({"WAITAOF", "1", "0", "1"}), "*2\r\n:0\r\n:0\r\n");
  EXPECT_LE(server.run([](Server& s) { return s.append_only->waiters(); }), 65u);
}

// The clients of the failed round get no reply, later ones get an error.
TEST(Aof, with_always_lets_no_reply_leave_that_would_lie) {
  const ScratchFolder folder;
  BadDisk disk;
  RunningServer server(keeping(folder), disk.disk());
  std::vector<WireClient> all;
  for (int i = 0; i < 5; ++i) all.push_back(server.connect());
  for (WireClient& client : all) client.call({"PING"});
  WireClient idle = server.connect();
  idle.call({"PING"});
  disk.write_error = ENOSPC;
  server.run([&](Server&) {
    for (WireClient& client : all) {
      client.send(encode({"INCR", "n"}));
      ::shutdown(client.fd(), SHUT_WR);  // must be answered before it is closed, whatever the answer
    }
  });
  for (WireClient& client : all) {
    const std::string said = client.until_closed();
    EXPECT_TRUE(said.empty() || said.starts_with("-MISCONF")) << said;
  }
  EXPECT_EQ(idle.call({"GET", "none"}), "$-1\r\n");
}

}  // namespace
}  // namespace weir::kv::testing
