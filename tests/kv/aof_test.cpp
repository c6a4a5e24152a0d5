// The append-only log: acknowledged writes survive a restart, and files that are not logs are refused.
#include "tests/kv/aof.hpp"

namespace weir::kv::testing {
namespace {

namespace fs = std::filesystem;

TEST(Aof, is_read_back_at_the_next_start) {
  const ScratchFolder folder;
  std::string before;
  {
    RunningServer server(keeping(folder));
    WireClient client = server.connect();
    const std::vector<std::vector<std::string>> commands{
        {"SET", "text", "value"},
        {"SET", "expiring", "value", "EX", "1000"},
        {"RPUSH", "l", "a", "b"},
        {"SADD", "s", "a", "b", "c", "d"},
        {"SPOP", "s"},
        {"HSET", "h", "a", "1"},
        {"ZADD", "z", "1", "a"},
        {"SELECT", "3"},
        {"SET", "text", "other"},
        {"FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() end)"},
        {"MULTI"},
        {"INCR", "n"},
        {"INCR", "n"},
        {"EXEC"}};
    for (const auto& words : commands) ASSERT_NE(client.call(words)[0], '-') << words[0];
    before = state_of(server);
  }
  RunningServer again(keeping(folder));
  EXPECT_EQ(state_of(again), before);
}

TEST(Aof, is_read_back_by_debug_loadaof) {
  struct Row {
    const char* name;
    std::vector<std::vector<std::string>> before;
  };
  // The base that the second log needs is being written when it is asked for.
  for (const Row& row :
       {Row{"from the start", {}}, Row{"turned on just now", {{"CONFIG", "SET", "appendonly", "yes"}}}}) {
    SCOPED_TRACE(row.name);
    const ScratchFolder folder;
    Settings settings = keeping(folder);
    settings.appendonly = row.before.empty();
    settings.enable_debug_command = 1;
    RunningServer server(std::move(settings));
    WireClient client = server.connect();
    client.call({"SET", "before", "1"});
    client.call(
        {"FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 7 end)"});
    for (const auto& words : row.before) EXPECT_EQ(client.call(words), "+OK\r\n");
    client.call({"SET", "expiring", "v", "EX", "1000"});
    client.call({"INCR", "n"});
    const std::string state = state_of(server);
    EXPECT_EQ(client.call({"DEBUG", "LOADAOF"}), "+OK\r\n");
    EXPECT_EQ(state_of(server), state);
    EXPECT_EQ(client.call({"FCALL", "f", "0"}), ":7\r\n");
    // What was replayed is not in the log a second time, and the log goes on.
    EXPECT_EQ(client.call({"INCR", "n"}), ":2\r\n");
    EXPECT_EQ(client.call({"DEBUG", "LOADAOF"}), "+OK\r\n");
    EXPECT_EQ(client.call({"GET", "n"}), "$1\r\n2\r\n");
  }
}

TEST(Aof, is_read_back_by_debug_loadaof_only_if_nothing_else_has_the_data) {
  const ScratchFolder folder;
  Settings settings = keeping(folder);
  settings.enable_debug_command = 1;
  RunningServer server(std::move(settings));
  WireClient client = server.connect();
  constexpr const char* refused =
      "-ERR Error trying to load the AOF files: it cannot be loaded in a transaction or while replicas "
      "follow\r\n";
  client.call({"MULTI"});
  client.call({"SET", "k", "v"});
  client.call({"DEBUG", "LOADAOF"});
  EXPECT_EQ(client.call({"EXEC"}), std::string("*2\r\n+OK\r\n") + refused);
  WireClient replica = server.connect();
  replica.call({"REPLCONF", "capa", "eof"});
  replica.send(encode({"PSYNC", "?", "-1"}));
  EXPECT_TRUE(replica.through("\r\n").starts_with("+FULLRESYNC"));
  EXPECT_EQ(client.call({"DEBUG", "LOADAOF"}), refused);
  client.call({"CONFIG", "SET", "appendonly", "no"});
  EXPECT_EQ(client.call({"DEBUG", "LOADAOF"}), refused);
  EXPECT_EQ(client.call({"GET", "k"}), "$1\r\nv\r\n");
}

TEST(Aof, consists_of_the_files_that_redis_7_has) {
  const ScratchFolder folder;
  RunningServer server(keeping(folder));
  server.connect().call({"SET", "k", "v", "EX", "100"});
  EXPECT_EQ(text_of(log_file(folder, "manifest")), "file appendonly.aof.1.incr.aof seq 1 type i\n");
  EXPECT_TRUE(requests_in(log_file(folder, "1.incr.aof")).starts_with("SELECT 0;SET k v PXAT "));
}

TEST(Aof, that_ends_in_the_middle_of_a_request_is_cut_there) {
  struct Row {
    const char* tail;
    bool transaction;
  };
  const Row table[] = {{"*2\r\n$3\r\nSET\r\n$1", false},
                       {"*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$1\r\ny\r\n", true}};
  for (const Row& row : table) {
    const ScratchFolder folder;
    {
      RunningServer(keeping(folder)).connect().call({"SET", "a", "1"});
    }
    const std::string path = log_file(folder, "1.incr.aof");
    const std::string whole = text_of(path);
    std::ofstream(path, std::ios::app) << row.tail;
    Settings strict = keeping(folder);
    strict.aof_load_truncated = false;
    EXPECT_NE(listen_error(strict).find("ends in the middle of a request"), std::string::npos);
    {
      RunningServer again(keeping(folder));
      EXPECT_EQ(text_of(path), whole);
      EXPECT_NE(again.log().find("ends in the middle of a request"), std::string::npos);
      EXPECT_EQ(again.connect().call({"GET", "x"}), "$-1\r\n");
      again.connect().call({"SET", "b", "2"});
    }
    RunningServer once_more(keeping(folder));
    EXPECT_EQ(once_more.connect().call({"MGET", "a", "b"}), "*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
  }
}

TEST(Aof, with_anything_but_requests_of_a_log_in_it_is_refused) {
  struct Row {
    const char* tail;
    const char* why;
  };
  const Row table[] = {
      {"SET a b\r\n", "Bad file format"},
      {"*1\r\n$8\r\nSHUTDOWN\r\n", "Unknown command 'SHUTDOWN' reading the append only file"},
      {"*4\r\n$6\r\nCONFIG\r\n$3\r\nSET\r\n$4\r\nsave\r\n$1\r\n1\r\n", "Unknown command 'CONFIG'"},
      {"*3\r\n$4\r\nEVAL\r\n$1\r\n1\r\n$1\r\n0\r\n", "Unknown command 'EVAL'"},
      {"*1\r\n$3\r\nSET\r\n", "Unknown command 'SET'"},
      {"*1\r\n$4\r\nEXEC\r\n", "EXEC without MULTI"},
  };
  for (const auto& [tail, why] : table) {
    const ScratchFolder folder;
    {
      RunningServer(keeping(folder)).connect().call({"SET", "a", "1"});
    }
    std::ofstream(log_file(folder, "1.incr.aof"), std::ios::app) << tail;
    EXPECT_NE(listen_error(keeping(folder)).find(why), std::string::npos) << tail;
  }
}

TEST(Aof, keeps_keys_that_expired_while_the_server_was_down_out_of_sight) {
  const ScratchFolder folder;
  {
    RunningServer server(keeping(folder));
    server.advance_ms(-3'600'000);
    WireClient client = server.connect();
    client.call({"SET", "k", "v", "PX", "1000000"});
    client.call({"SET", "lasting", "v"});
  }
  RunningServer again(keeping(folder));
  pass_ms(again, 1000);
  EXPECT_EQ(again.connect().call({"GET", "k"}), "$-1\r\n");
  EXPECT_EQ(again.connect().call({"DBSIZE"}), ":1\r\n");
}

// SET ... PX, APPEND, and a start after the key has expired: APPEND must find what it found when it was
// logged.
TEST(Aof, is_replayed_as_if_no_time_passed) {
  const ScratchFolder folder;
  {
    RunningServer server(keeping(folder));
    server.advance_ms(-3'600'000);
    WireClient client = server.connect();
    client.call({"SET", "k", "a", "PX", "1000000"});
    client.call({"APPEND", "k", "b"});
  }
  RunningServer again(keeping(folder));
  EXPECT_EQ(again.connect().call({"EXISTS", "k"}), ":0\r\n");
}

TEST(Aof, stays_in_its_folder) {
  const ScratchFolder folder;
  struct Row {
    std::string Settings::* setting;
    const char* value;
    const char* error;
  };
  const Row table[] = {{&Settings::appendfilename, "../x", "can't be a path"},
                       {&Settings::appendfilename, "", "can't be a path"},
                       {&Settings::appenddirname, "..", "a name without a path"},
                       {&Settings::appenddirname, "/tmp", "a name without a path"}};
  for (const Row& row : table) {
    Settings settings = keeping(folder);
    settings.*row.setting = row.value;
    EXPECT_NE(listen_error(settings).find(row.error), std::string::npos) << row.value;
  }
  const ScratchFolder elsewhere;
  fs::create_directory_symlink(elsewhere.path(), folder.file("appendonlydir"));
  EXPECT_NE(listen_error(keeping(folder)).find("cannot keep the log"), std::string::npos);
  fs::remove(folder.file("appendonlydir"));
  fs::create_directory(folder.file("appendonlydir"));
  std::ofstream(elsewhere.file("x")) << "*1\r\n$8\r\nFLUSHALL\r\n";
  fs::create_symlink(elsewhere.file("x"), log_file(folder, "1.incr.aof"));
  std::ofstream(log_file(folder, "manifest")) << "file appendonly.aof.1.incr.aof seq 1 type i\n";
  EXPECT_NE(listen_error(keeping(folder)).find("cannot read"), std::string::npos);
}

// Redis before version 7 kept the log in one file, often beginning with a snapshot.
TEST(Aof, of_one_file_becomes_the_base) {
  for (const bool with_snapshot : {false, true}) {
    const ScratchFolder folder;
    if (with_snapshot) {
      Settings settings = quiet_settings();
      settings.dir = folder.path();
      settings.dbfilename = "appendonly.aof";
      RunningServer server(settings);
      server.connect().call({"SET", "old", "1"});
      ASSERT_EQ(server.connect().call({"SAVE"}), "+OK\r\n");
    }
    std::ofstream(folder.file("appendonly.aof"), std::ios::app)
        << "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
    for (int start = 0; start < 2; ++start) {
      RunningServer server(keeping(folder));
      EXPECT_EQ(server.connect().call({"GET", "a"}), "$1\r\n1\r\n");
      EXPECT_EQ(server.connect().call({"EXISTS", "old"}), with_snapshot ? ":1\r\n" : ":0\r\n");
      EXPECT_EQ(text_of(log_file(folder, "manifest")),
                "file appendonly.aof seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n");
      EXPECT_FALSE(fs::exists(folder.file("appendonly.aof")));
    }
  }
}

TEST(Aof, that_does_not_exist_begins_with_the_snapshot) {
  const ScratchFolder folder;
  {
    Settings settings = quiet_settings();
    settings.dir = folder.path();
    RunningServer server(settings);
    server.connect().call({"SET", "old", "1"});
    ASSERT_EQ(server.connect().call({"SAVE"}), "+OK\r\n");
  }
  {
    RunningServer server(keeping(folder));
    EXPECT_EQ(server.connect().call({"INCR", "old"}), ":2\r\n");
  }
  fs::remove(folder.file("dump.rdb"));
  RunningServer server(keeping(folder));
  EXPECT_EQ(server.connect().call({"GET", "old"}), "$1\r\n2\r\n");
}

// A damaged file is distinguished from one that ends early, and nothing is cut off it.
TEST(Aof, with_a_damaged_base_is_refused) {
  const ScratchFolder folder;
  {
    RunningServer server(keeping(folder));
    server.connect().call({"SET", "a", "1"});
    ASSERT_EQ(server.connect().call({"BGREWRITEAOF"})[0], '+');
    await_rewrite(server);
  }
  const std::string path = log_file(folder, "1.base.rdb");
  const std::string whole = text_of(path);
  for (const std::string& bad :
       {whole.substr(0, whole.size() - 20), whole.substr(0, 20) + "x" + whole.substr(21)}) {
    std::ofstream(path) << bad;
    EXPECT_NE(listen_error(keeping(folder)).find("1.base.rdb is not loaded"), std::string::npos);
    EXPECT_EQ(text_of(path), bad);
  }
}

TEST(Aof, tells_how_far_its_loading_is_and_can_be_stopped) {
  const ScratchFolder folder;
  {
    RunningServer server(keeping(folder, aof::Sync::no));
    std::string batch;
    for (int i = 0; i < 5000; ++i) batch += encode({"SET", std::to_string(i), "x"});
    WireClient client = server.connect();
    client.send(batch);
    for (int i = 0; i < 5000; ++i) client.reply();
  }
  Settings settings = keeping(folder);
  settings.appendonly = false;
  RunningServer server(settings);
  server.run([&](Server& s) {
    std::vector<std::uint64_t> seen;
    auto loaded = s.append_only->start([&] {
      EXPECT_TRUE(s.loading);
      seen.push_back(s.loading->bytes_done * 100 / s.loading->bytes_all);
      return true;
    });
    ASSERT_TRUE(loaded) << loaded.error();
    EXPECT_EQ(*loaded, LoadResult::loaded);
    EXPECT_GE(seen.size(), 4u);
    EXPECT_TRUE(std::ranges::is_sorted(seen));
    EXPECT_FALSE(s.loading);
  });
  RunningServer stopped(settings);
  stopped.run([&](Server& s) {
    const auto loaded = s.append_only->start([] { return false; });
    ASSERT_TRUE(loaded) << loaded.error();
    EXPECT_EQ(*loaded, LoadResult::stopped);
    EXPECT_FALSE(s.append_only->on());
  });
}

}  // namespace
}  // namespace weir::kv::testing
