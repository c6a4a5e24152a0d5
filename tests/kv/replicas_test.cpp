// What a server does for its replicas, as seen by a test that speaks the protocol by hand.
#include <gtest/gtest.h>

#include <fstream>

#include "kv/persistence/loading.hpp"
#include "kv/persistence/snapshots.hpp"
#include "kv/replication/synced_history.hpp"
#include "tests/kv/aof.hpp"
#include "tests/kv/hand_replica.hpp"

namespace weir::kv::testing {
namespace {

const std::string select_0 = encode({"SELECT", "0"});

// Waits until INFO contains it that many times.
void await_said(RunningServer& server, const std::string& what, std::size_t count = 1) {
  WireClient client = server.connect();
  const auto said = [&] {
    const std::string facts = client.call({"INFO", "replication"});
    std::size_t found = 0;
    for (std::size_t at = 0; (at = facts.find(what, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  while (said() != count) {
  }
}

void await_online(RunningServer& server, std::size_t count = 1) { await_said(server, "state=online", count); }

// Over TLS a transport reports late that a reply has left, and Redis refuses PSYNC until then.
TEST(Replicas, may_ask_before_the_last_answer_has_left) {
  RunningServer server;
  HandReplica replica(server);
  replica.wire.send(encode({"PING"}) + encode({"PSYNC", "?", "-1"}));
  EXPECT_EQ(replica.wire.through("\r\n"), "+PONG\r\n");
  EXPECT_TRUE(replica.wire.through("\r\n").starts_with("+FULLRESYNC "));
}

TEST(Replicas, are_sent_a_snapshot_and_then_each_change) {
  RunningServer server;
  WireClient client = server.connect();
  client.call({"SET", "a", "1"});
  HandReplica replica(server);
  replica.follow();
  EXPECT_TRUE(replica.snapshot.starts_with("REDIS0010")) << replica.snapshot.substr(0, 9);
  client.call({"SET", "b", "2"});
  EXPECT_EQ(replica.take({"SET", "b", "2"}), select_0 + encode({"SET", "b", "2"}));
  client.call({"SELECT", "3"});
  client.call({"SETEX", "c", "100", "3"});
  EXPECT_TRUE(replica.take({"SELECT", "3"}).starts_with("*2"));
  const std::string set = replica.wire.reply();
  EXPECT_NE(set.find("PXAT"), std::string::npos) << set;
}

// What a server that starts with these bytes as its snapshot knows of hash h.
std::string times_in(const std::string& snapshot) {
  const ScratchFolder folder;
  std::ofstream(folder.file("dump.rdb"), std::ios::binary) << snapshot;
  Settings settings = quiet_settings();
  settings.dir = folder.path();
  RunningServer server(settings);
  server.run([](Server& s) {
    const auto loaded = load_snapshot(s, [] { return true; });
    EXPECT_TRUE(loaded) << loaded.error();
  });
  return server.connect().call({"HPEXPIRETIME", "h", "FIELDS", "2", "a", "b"});
}

// Valkey 9 does not read Redis 7.4's form of hashes whose fields expire, nor Redis Valkey's.
TEST(Replicas, are_sent_the_form_of_snapshot_that_they_read) {
  RunningServer server;
  WireClient client = server.connect();
  client.call({"HSET", "h", "a", "1", "b", "2"});
  struct Row {
    const char* version;  // null: the replica does not say
    const char* header;
    char type;
  };
  const auto expect_form = [&](const Row& row) {
    HandReplica replica(server);
    if (row.version != nullptr) replica.wire.call({"REPLCONF", "version", row.version});
    replica.follow();
    EXPECT_EQ(replica.snapshot.substr(0, 9), row.header);
    EXPECT_NE(replica.snapshot.find(std::string(1, row.type) + "\x01h"), std::string::npos) << row.header;
    return replica.snapshot;
  };
  for (const char* version : {"8.1.4", "9.0.0"}) expect_form({version, "REDIS0010", 4});
  client.call({"HPEXPIREAT", "h", "4000000000000", "FIELDS", "1", "a"});
  for (const Row& row :
       {Row{nullptr, "REDIS0012", 24}, Row{"8.1.4", "REDIS0012", 24}, Row{"x", "REDIS0012", 24},
        Row{"9.0.0", "VALKEY080", 22}, Row{"10.2.1", "VALKEY080", 22}}) {
    EXPECT_EQ(times_in(expect_form(row)), "*2\r\n:4000000000000\r\n:-1\r\n") << row.header;
  }
}

// A replica that loads the snapshot would not find its end if more data followed it.
TEST(Replicas, are_sent_no_change_before_they_confirmed_the_snapshot) {
  RunningServer server;
  WireClient client = server.connect();
  HandReplica replica(server);
  const std::string line = replica.psync("?", "-1");
  replica.offset = std::stoll(line.substr(53));
  replica.take_snapshot();
  client.call({"SET", "b", "2"});
  EXPECT_TRUE(replica.wire.quiet());
  replica.confirm();
  EXPECT_EQ(replica.take({"SET", "b", "2"}), select_0 + encode({"SET", "b", "2"}));
}

TEST(Replicas, go_on_where_they_were_cut_off) {
  RunningServer server;
  WireClient client = server.connect();
  HandReplica first(server);
  first.follow();
  client.call({"SET", "a", "1"});
  first.take({"SET", "a", "1"});
  first.wire.close();
  client.call({"SET", "b", "2"});
  struct Row {
    const char* id;  // null: the server's id
    std::int64_t behind;
    const char* answer;
  };
  for (const Row& row :
       {Row{nullptr, 1, "+CONTINUE"}, Row{nullptr, 1000, "+FULLRESYNC"}, Row{nullptr, -100000, "+FULLRESYNC"},
        Row{"0123456789012345678901234567890123456789", 1, "+FULLRESYNC"}}) {
    HandReplica again(server);
    again.offset = first.offset;
    const std::string line =
        again.psync(row.id == nullptr ? first.id : row.id, std::to_string(first.offset + row.behind));
    EXPECT_TRUE(line.starts_with(row.answer)) << line;
    if (row.answer[1] != 'C') continue;
    EXPECT_EQ(line, "+CONTINUE " + first.id);
    EXPECT_EQ(again.take({"SET", "b", "2"}), encode({"SET", "b", "2"}));
  }
}

// A snapshot whose length comes first. The server may say before it that it is alive.
std::string take_counted_snapshot(WireClient& wire) {
  std::string head;
  while ((head = wire.through("\n")) == "\n") {
  }
  EXPECT_EQ(head[0], '$') << head;
  return wire.exactly(std::stoull(head.substr(1)));
}

TEST(Replicas, that_know_no_end_mark_are_told_the_length) {
  const ScratchFolder folder;
  Settings settings = quiet_settings();
  settings.dir = folder.path();
  for (const std::vector<std::string>& request :
       std::vector<std::vector<std::string>>{{"PSYNC", "?", "-1"}, {"SYNC"}}) {
    RunningServer server(settings);
    WireClient client = server.connect();
    const std::string large(3 << 20, 'x');
    for (int i = 0; i < 10; ++i) client.call({"SET", "k" + std::to_string(i), large + std::to_string(i)});
    WireClient replica = server.connect();
    replica.send(encode(request));
    if (request.size() > 1) {
      EXPECT_TRUE(replica.through("\r\n").starts_with("+FULLRESYNC ")) << request[0];
    }
    const std::string snapshot = take_counted_snapshot(replica);
    EXPECT_TRUE(snapshot.starts_with("REDIS0010")) << request[0];
    EXPECT_EQ(snapshot[snapshot.size() - 9], '\xff') << "the end, before the checksum";
    client.call({"SET", "b", "2"});
    EXPECT_EQ(replica.through(encode({"SET", "b", "2"})), select_0 + encode({"SET", "b", "2"}))
        << request[0] << ": it need not confirm anything";
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()) || std::filesystem::exists(folder.file("s")));
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      ADD_FAILURE() << entry.path() << " is left";
  }
}

TEST(Replicas, that_know_an_end_mark_and_those_that_do_not_get_a_snapshot_each) {
  RunningServer server;
  WireClient client = server.connect();
  const std::string large(1 << 20, 'x');
  for (int i = 0; i < 40; ++i) client.call({"SET", "k" + std::to_string(i), large});
  HandReplica first(server);
  first.psync("?", "-1");  // what it leaves unread holds up the snapshot
  WireClient counted = server.connect();
  counted.send(encode({"SYNC"}));
  HandReplica marked(server);
  marked.wire.send(encode({"PSYNC", "?", "-1"}));
  await_said(server, "state=wait_bgsave", 2);
  client.call({"SET", "last", "1"});
  first.take_snapshot();
  EXPECT_NE(take_counted_snapshot(counted).find("last"), std::string::npos);
  EXPECT_NE(marked.wire.through("\r\n").find("+FULLRESYNC"), std::string::npos);
  EXPECT_NE(marked.take_snapshot().find("last"), std::string::npos);
}

TEST(Replicas, that_need_the_length_are_closed_when_no_file_can_hold_the_snapshot) {
  BadDisk disk;
  RunningServer server(quiet_settings(), disk.disk());
  server.connect().call({"SET", "a", "1"});
  disk.write_error = ENOSPC;
  WireClient replica = server.connect();
  replica.send(encode({"SYNC"}));
  EXPECT_EQ(replica.until_closed().find('$'), std::string::npos);
  EXPECT_NE(server.log().find("cannot write the snapshot: No space left on device; a replica that says "
                              "'REPLCONF capa eof' needs no file"),
            std::string::npos)
      << server.log();
  HandReplica marked(server);
  marked.follow();
}

// SYNC is older than confirmations.
TEST(Replicas, that_asked_the_old_way_may_be_silent) {
  RunningServer server;
  WireClient client = server.connect();
  WireClient replica = server.connect();
  replica.send(encode({"SYNC"}));
  take_counted_snapshot(replica);
  await_online(server);
  for (int i = 0; i < 10; ++i) pass_ms(server, 60'000);
  client.call({"SET", "b", "2"});
  EXPECT_NE(replica.through(encode({"SET", "b", "2"})), "");
}

TEST(Replicas, that_leave_much_unread_are_closed) {
  Settings settings = quiet_settings();
  settings.replica_output = {2 << 20, 0, 0};
  settings.repl_backlog_size = 1;
  RunningServer server(std::move(settings));
  WireClient client = server.connect();
  HandReplica replica(server);
  replica.follow();
  await_online(server);
  const std::string large(1 << 20, 'x');
  for (int i = 0; i < 20; ++i) client.call({"SET", "k" + std::to_string(i), large});
  await_online(server, 0);
  EXPECT_NE(server.log().find("more waits for it than client-output-buffer-limit allows"), std::string::npos);
}

TEST(Replicas, that_are_behind_for_too_long_are_closed) {
  Settings settings = quiet_settings();
  settings.replica_output = {0, 1 << 20, 500};
  settings.repl_timeout_s = 10'000;
  settings.repl_backlog_size = 1;
  RunningServer server(std::move(settings));
  WireClient client = server.connect();
  HandReplica replica(server);
  replica.follow();
  await_online(server);
  const std::string large(1 << 20, 'x');
  for (int i = 0; i < 8; ++i) client.call({"SET", "k" + std::to_string(i), large});
  pass_ms(server, 400'000);
  await_online(server);
  pass_ms(server, 200'000);
  await_online(server, 0);
}

TEST(Replicas, that_are_silent_are_closed) {
  Settings settings = quiet_settings();
  settings.repl_timeout_s = 600;
  RunningServer server(std::move(settings));
  HandReplica silent(server);
  silent.follow();
  await_online(server);
  pass_ms(server, 500'000);
  await_online(server);
  silent.take({"PING"});
  silent.confirm();
  await_said(server, "offset=" + std::to_string(silent.offset) + ",");
  pass_ms(server, 500'000);
  await_online(server);
  pass_ms(server, 200'000);
  await_online(server, 0);
  EXPECT_NE(server.log().find("nothing was heard of it for repl-timeout"), std::string::npos);
}

TEST(Replicas, hear_a_ping_now_and_then) {
  RunningServer server;
  HandReplica replica(server);
  replica.follow();
  await_online(server);
  pass_ms(server, 10'000);
  EXPECT_EQ(replica.take({"PING"}), encode({"PING"}));
}

TEST(Replicas, are_needed_for_changes_if_the_settings_say_so) {
  Settings settings = quiet_settings();
  settings.min_replicas_to_write = 1;
  settings.min_replicas_max_lag_s = 5;
  RunningServer server(std::move(settings));
  WireClient client = server.connect();
  const auto change = [&] { return client.call({"SET", "k", "v"}); };
  constexpr const char* refused = "-NOREPLICAS Not enough good replicas to write.\r\n";
  constexpr const char* ok = "+OK\r\n";
  EXPECT_EQ(change(), refused);
  EXPECT_EQ(client.call({"GET", "k"}), "$-1\r\n");
  HandReplica replica(server);
  replica.follow();
  await_online(server);
  EXPECT_EQ(change(), ok);
  await_said(server, "min_slaves_good_slaves:1");
  // Its connection is as it was, but it is silent.
  pass_ms(server, 7000);
  await_said(server, "min_slaves_good_slaves:0");
  EXPECT_EQ(change(), refused);
  replica.take({"SET", "k", "v"});
  replica.confirm();
  await_said(server, "min_slaves_good_slaves:1");
  EXPECT_EQ(change(), ok);
  client.call({"CONFIG", "SET", "min-replicas-to-write", "2"});
  EXPECT_EQ(change(), refused);
}

// It would otherwise do half of what it does.
TEST(Replicas, are_not_needed_by_a_script_that_has_already_written) {
  Settings settings = quiet_settings();
  settings.enable_debug_command = 1;
  RunningServer server(std::move(settings));
  WireClient client = server.connect();
  ASSERT_EQ(client.call({"DEBUG", "SET-DISABLE-DENY-SCRIPTS", "1"}), "+OK\r\n");
  EXPECT_EQ(client.call({"EVAL",
                         "redis.call('set', 'a', '1') "
                         "redis.call('config', 'set', 'min-replicas-to-write', '1') "
                         "return redis.call('set', 'b', '2')",
                         "0"}),
            "+OK\r\n");
  EXPECT_EQ(client.call({"MGET", "a", "b"}), "*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
}

TEST(Replicas, are_answered_nothing_in_their_stream) {
  RunningServer server;
  WireClient client = server.connect();
  HandReplica replica(server);
  replica.follow();
  replica.wire.send(encode({"GET", "a"}) + encode({"PSYNC", "?", "-1"}) + encode({"NOSUCH"}));
  await_online(server);
  client.call({"SET", "b", "2"});
  EXPECT_EQ(replica.take({"SET", "b", "2"}), select_0 + encode({"SET", "b", "2"}));
}

TEST(Replicas, of_which_none_came_back_are_forgotten) {
  RunningServer server;
  WireClient client = server.connect();
  std::string id;
  {
    HandReplica replica(server);
    replica.follow();
    id = replica.id;
  }
  await_clients(server, 1);
  pass_ms(server, 3'500'000);
  EXPECT_NE(client.call({"INFO", "replication"}).find("repl_backlog_active:1"), std::string::npos);
  pass_ms(server, 200'000);
  const std::string facts = client.call({"INFO", "replication"});
  EXPECT_NE(facts.find("repl_backlog_active:0"), std::string::npos);
  EXPECT_EQ(facts.find(id), std::string::npos) << "what changes now is in no history of that name";
}

TEST(Replicas, and_snapshots_on_the_disk_wait_for_each_other) {
  RunningServer server;
  WireClient client = server.connect();
  const std::string large(1 << 20, 'x');
  for (int i = 0; i < 40; ++i) client.call({"SET", "k" + std::to_string(i), large});
  HandReplica replica(server);
  replica.psync("?", "-1");  // unread data hold up the snapshot
  EXPECT_EQ(client.call({"BGSAVE"}), "-ERR Background save already in progress\r\n");
  EXPECT_EQ(client.call({"SAVE"}), "-ERR Background save already in progress\r\n");
  replica.wire.close();
  await_clients(server, 1);
  EXPECT_EQ(client.call({"CONFIG", "SET", "save", ""}), "+OK\r\n");
  EXPECT_TRUE(server.run([](Server& s) {
    const auto walk = s.snapshots->lend_walk(Snapshots::LentTo::replicas, [] {});
    s.snapshots->walk_returned();
    return walk.has_value();
  }));
}

TEST(Replicas, that_come_during_a_snapshot_get_the_next_one) {
  RunningServer server;
  WireClient client = server.connect();
  const std::string large(1 << 20, 'x');
  for (int i = 0; i < 40; ++i) client.call({"SET", "k" + std::to_string(i), large});
  HandReplica first(server);
  first.psync("?", "-1");
  HandReplica second(server);
  second.wire.send(encode({"PSYNC", "?", "-1"}));
  await_said(server, "state=wait_bgsave");
  client.call({"SET", "last", "1"});
  first.take_snapshot();
  EXPECT_NE(second.wire.through("\r\n").find("+FULLRESYNC"), std::string::npos);
  EXPECT_NE(second.take_snapshot().find("last"), std::string::npos);
}

TEST(WaitForReplicas, ends_when_enough_have_confirmed) {
  RunningServer server;
  WireClient client = server.connect();
  HandReplica one(server);
  HandReplica other(server);
  one.follow();
  other.follow();
  await_online(server, 2);
  client.call({"SET", "a", "1"});
  client.send(encode({"WAIT", "2", "0"}));
  one.take({"REPLCONF", "GETACK", "*"});
  other.take({"REPLCONF", "GETACK", "*"});
  one.confirm();
  WireClient second = server.connect();
  second.call({"PING"});
  EXPECT_TRUE(client.quiet());
  other.confirm();
  EXPECT_EQ(client.reply(), ":2\r\n");
  EXPECT_EQ(client.call({"WAIT", "2", "0"}), ":2\r\n");
}

TEST(WaitForReplicas, counts_those_that_have_confirmed_when_its_time_is_up) {
  RunningServer server;
  WireClient client = server.connect();
  HandReplica replica(server);
  replica.follow();
  await_online(server);
  client.call({"SET", "a", "1"});
  client.send(encode({"WAIT", "2", "1000"}));
  replica.take({"REPLCONF", "GETACK", "*"});
  replica.confirm();
  await_said(server, "offset=" + std::to_string(replica.offset) + ",");
  EXPECT_TRUE(client.quiet());
  pass_ms(server, 1000);
  EXPECT_EQ(client.reply(), ":1\r\n");
}

TEST(WaitForReplicas, believes_none_that_confirms_more_than_it_was_sent) {
  RunningServer server;
  WireClient client = server.connect();
  HandReplica liar(server);
  liar.follow();
  await_online(server);
  liar.wire.send(encode({"REPLCONF", "ACK", "9223372036854775807"}));
  client.call({"SET", "a", "1"});
  EXPECT_EQ(client.call({"WAIT", "1", "50"}), ":0\r\n");
}

TEST(WaitForDisksOfReplicas, ends_when_enough_have_it_on_theirs) {
  RunningServer server;
  WireClient client = server.connect();
  HandReplica one(server);
  HandReplica other(server);
  one.follow();
  other.follow();
  await_online(server, 2);
  client.call({"SET", "a", "1"});
  client.send(encode({"WAITAOF", "0", "1", "0"}));
  one.take({"REPLCONF", "GETACK", "*"});
  other.take({"REPLCONF", "GETACK", "*"});
  one.confirm();  // it has no log
  other.confirm_synced(0);
  await_said(server, "offset=" + std::to_string(one.offset) + ",", 2);
  EXPECT_TRUE(client.quiet()) << "applied is not synced";
  other.confirm_synced(other.offset);
  EXPECT_EQ(client.reply(), "*2\r\n:0\r\n:1\r\n");
  EXPECT_EQ(client.call({"WAITAOF", "0", "1", "0"}), "*2\r\n:0\r\n:1\r\n");
}

TEST(WaitForDisksOfReplicas, counts_those_that_have_it_when_its_time_is_up) {
  RunningServer server;
  WireClient client = server.connect();
  HandReplica replica(server);
  replica.follow();
  await_online(server);
  client.call({"SET", "a", "1"});
  client.send(encode({"WAITAOF", "0", "2", "1000"}));
  replica.take({"REPLCONF", "GETACK", "*"});
  replica.confirm_synced(replica.offset);
  await_said(server, "offset=" + std::to_string(replica.offset) + ",");
  EXPECT_TRUE(client.quiet());
  pass_ms(server, 1000);
  EXPECT_EQ(client.reply(), "*2\r\n:0\r\n:1\r\n");
}

// More than it was sent, or more than it has applied, cannot be on its disk.
TEST(WaitForDisksOfReplicas, believes_none_that_has_more_than_it_applied) {
  RunningServer server;
  WireClient client = server.connect();
  HandReplica liar(server);
  liar.follow();
  await_online(server);
  liar.confirm_synced(std::numeric_limits<std::int64_t>::max());
  client.call({"SET", "a", "1"});
  EXPECT_EQ(client.call({"WAITAOF", "0", "1", "50"}), "*2\r\n:0\r\n:0\r\n");
}

TEST(SyncedHistory, is_what_the_synced_part_of_the_log_holds) {
  struct Step {
    std::int64_t applied;
    std::uint64_t written, synced;
    std::int64_t expected;
  };
  constexpr Step steps[] = {
      {100, 50, 0, 0},    {200, 80, 49, 0},   {200, 80, 50, 100}, {300, 90, 79, 100},
      {300, 90, 85, 200}, {300, 90, 90, 300}, {300, 90, 90, 300},  // nothing new
      {400, 10, 5, 300},  // the log was rewritten, and its base holds the rest
      {400, 10, 10, 400},
  };
  repl::SyncedHistory history;
  for (const Step& step : steps) {
    SCOPED_TRACE(::testing::PrintToString(step.applied) + " at " + ::testing::PrintToString(step.synced));
    history.note(step.applied, step.written, step.synced);
    EXPECT_EQ(history.so_far(), step.expected);
  }
}

}  // namespace
}  // namespace weir::kv::testing
