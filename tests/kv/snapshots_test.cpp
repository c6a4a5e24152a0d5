// Snapshots on the disk: saved data are restored, whatever happens while they are saved, and failures to save
// are reported.
#include "kv/persistence/snapshots.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kv/persistence/loading.hpp"
#include "tests/kv/every_type.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

Settings settings_in(const std::string& folder) {
  Settings settings = quiet_settings();
  settings.dir = folder;
  return settings;
}

std::string load(RunningServer& server) {
  return server.run([](Server& s) {
    const auto done = load_snapshot(s, [] { return true; });
    return done ? *done == LoadResult::loaded ? "loaded" : "nothing" : done.error();
  });
}

std::string info(WireClient& client, const std::string& name) {
  const std::string text = client.call({"INFO", "persistence"});
  const std::size_t at = text.find("\n" + name + ":");
  if (at == std::string::npos) return "missing";
  const std::size_t begin = at + name.size() + 2;
  return text.substr(begin, text.find('\r', begin) - begin);
}

void await_background_save(RunningServer& server) {
  while (server.run([](Server& s) { return s.snapshots->running(); })) std::this_thread::yield();
}

class SavedType : public ::testing::TestWithParam<EveryType> {};

TEST_P(SavedType, is_there_after_a_restart) {
  const ScratchFolder folder;
  std::string before, encoding;
  {
    RunningServer server(settings_in(folder.path()));
    WireClient client = server.connect();
    for (const Words& words : GetParam().make) client.call(words);
    encoding = client.call({"OBJECT", "ENCODING", "k"});
    before = seen(client, GetParam());
    ASSERT_EQ(client.call({"SAVE"}), "+OK\r\n");
  }
  RunningServer server(settings_in(folder.path()));
  EXPECT_EQ(load(server), "loaded");
  WireClient client = server.connect();
  EXPECT_EQ(client.call({"OBJECT", "ENCODING", "k"}), encoding);
  EXPECT_EQ(seen(client, GetParam()), before);
}
INSTANTIATE_TEST_SUITE_P(Types, SavedType, ::testing::ValuesIn(every_type()),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(Snapshots, hold_databases_expiry_and_functions) {
  const ScratchFolder folder;
  RunningServer first(settings_in(folder.path()));
  WireClient client = first.connect();
  client.call({"SET", "a", "1", "PXAT", "9999999999999"});
  client.call({"SET", "gone", "1", "PX", "50"});
  client.call({"SELECT", "5"});
  client.call({"SET", "b", "2"});
  client.call({"FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() return 7 end)"});
  ASSERT_EQ(client.call({"SAVE"}), "+OK\r\n");
  RunningServer second(settings_in(folder.path()));
  second.advance_ms(100);
  ASSERT_EQ(load(second), "loaded");
  WireClient reader = second.connect();
  EXPECT_EQ(reader.call({"PEXPIRETIME", "a"}), ":9999999999999\r\n");
  EXPECT_EQ(reader.call({"DBSIZE"}), ":1\r\n");
  EXPECT_EQ(reader.call({"FCALL", "f", "0"}), ":7\r\n");
  reader.call({"SELECT", "5"});
  EXPECT_EQ(reader.call({"GET", "b"}), "$1\r\n2\r\n");
  EXPECT_EQ(info(reader, "rdb_last_load_keys_loaded"), "2");
  EXPECT_EQ(info(reader, "rdb_last_load_keys_expired"), "1");
  EXPECT_EQ(info(reader, "rdb_changes_since_last_save"), "0");
}

// Every key is changed while the snapshot is taken; the snapshot has all of them as they were.
// A snapshot that is loaded into existing data: as in Redis, only MERGE replaces what is there.
TEST(DebugReload, replaces_what_is_there_only_if_told_so) {
  const ScratchFolder folder;
  Settings settings = settings_in(folder.path());
  settings.enable_debug_command = 1;
  RunningServer server(std::move(settings));
  WireClient client = server.connect();
  const auto library = [&](const char* name, const char* function) {
    return client.call({"FUNCTION", "LOAD",
                        "#!lua name=" + std::string(name) + "\nredis.register_function('" + function +
                            "', function() return 1 end)"});
  };
  client.call({"SET", "k", "saved"});
  library("saved", "f");
  EXPECT_EQ(client.call({"DEBUG", "RELOAD"}), "+OK\r\n");
  EXPECT_EQ(client.call({"FCALL", "f", "0"}), ":1\r\n");
  client.call({"SET", "k", "changed"});
  library("later", "g");
  constexpr const char* refused = "-ERR Error trying to load the RDB dump, check server logs\r\n";
  EXPECT_EQ(client.call({"DEBUG", "RELOAD", "NOSAVE", "NOFLUSH"}), refused);
  EXPECT_EQ(client.call({"GET", "k"}), "$7\r\nchanged\r\n");
  EXPECT_EQ(client.call({"DEBUG", "RELOAD", "NOSAVE", "NOFLUSH", "MERGE"}), "+OK\r\n");
  EXPECT_EQ(client.call({"GET", "k"}), "$5\r\nsaved\r\n");
  EXPECT_EQ(client.call({"FCALL", "g", "0"}), ":1\r\n") << "the library that the snapshot lacks stays";
  EXPECT_EQ(client.call({"DEBUG", "RELOAD", "NOSAVE"}), "+OK\r\n");
  EXPECT_NE(client.call({"FCALL", "g", "0"}), ":1\r\n");
}

TEST(BackgroundSave, is_of_the_moment_it_was_asked_for) {
  constexpr int keys = 30000;
  const ScratchFolder folder;
  RunningServer first(settings_in(folder.path()));
  WireClient client = first.connect();
  const auto set_all = [&](const std::string& value) {
    std::string batch;
    for (int i = 0; i < keys; ++i) batch += encode({"SET", "key:" + std::to_string(i), value});
    return batch;
  };
  client.send(set_all("old"));
  for (int i = 0; i < keys; ++i) client.reply();
  client.call({"RPUSH", "list", "a", "b"});
  client.send(encode({"BGSAVE"}) + encode({"BGSAVE"}) + encode({"RPUSH", "list", "c"}) +
              encode({"RENAME", "list", "other"}) + encode({"SWAPDB", "0", "1"}) + encode({"FLUSHDB"}) +
              set_all("new"));
  EXPECT_EQ(client.reply(), "+Background saving started\r\n");
  EXPECT_EQ(client.reply(), "-ERR Background save already in progress\r\n");
  for (int i = 0; i < keys + 4; ++i) client.reply();
  await_background_save(first);
  EXPECT_EQ(info(client, "rdb_last_bgsave_status"), "ok");
  EXPECT_EQ(info(client, "rdb_saves"), "1");
  EXPECT_NE(info(client, "rdb_changes_since_last_save"), "0");
  EXPECT_NE(client.call({"LASTSAVE"}), ":0\r\n");
  RunningServer second(settings_in(folder.path()));
  ASSERT_EQ(load(second), "loaded");
  WireClient reader = second.connect();
  EXPECT_EQ(reader.call({"DBSIZE"}), ":" + std::to_string(keys + 1) + "\r\n");
  EXPECT_EQ(reader.call({"LRANGE", "list", "0", "-1"}), "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
  for (int i = 0; i < keys; i += 97)
    EXPECT_EQ(reader.call({"GET", "key:" + std::to_string(i)}), "$3\r\nold\r\n") << i;
}

TEST(SavePoint, saves_when_time_and_changes_have_come) {
  const ScratchFolder folder;
  Settings settings = settings_in(folder.path());
  settings.save = "60 2";
  RunningServer server(std::move(settings));
  WireClient client = server.connect();
  client.call({"SET", "a", "1"});
  pass_ms(server, 70'000);
  await_background_save(server);
  EXPECT_EQ(info(client, "rdb_saves"), "0");
  client.call({"SET", "b", "1"});
  pass_ms(server, 1);
  await_background_save(server);
  EXPECT_EQ(info(client, "rdb_saves"), "1");
  EXPECT_EQ(info(client, "rdb_changes_since_last_save"), "0");
  EXPECT_TRUE(std::filesystem::exists(folder.file("dump.rdb")));
}

TEST(FailedSave, refuses_writes_until_one_succeeds) {
  const ScratchFolder folder;
  Settings settings = settings_in(folder.file("not_yet"));
  settings.save = "3600 1";
  RunningServer server(std::move(settings));
  WireClient client = server.connect();
  client.call({"SET", "k", "v"});
  EXPECT_EQ(client.call({"SAVE"}), "-ERR\r\n");
  EXPECT_EQ(info(client, "rdb_last_bgsave_status"), "err");
  EXPECT_EQ(client.call({"SET", "k", "w"}).substr(0, 9), "-MISCONF ");
  EXPECT_EQ(client.call({"EVAL", "return redis.call('SET', 'k', 'w')", "0"}).substr(0, 9), "-MISCONF ");
  EXPECT_EQ(client.call({"GET", "k"}), "$1\r\nv\r\n");
  EXPECT_EQ(client.call({"SHUTDOWN"}), "-ERR Errors trying to SHUTDOWN. Check logs.\r\n");
  EXPECT_EQ(info(client, "rdb_last_save_time"), "0");
  client.call({"CONFIG", "SET", "stop-writes-on-bgsave-error", "no"});
  EXPECT_EQ(client.call({"SET", "k", "w"}), "+OK\r\n");
  client.call({"CONFIG", "SET", "stop-writes-on-bgsave-error", "yes"});
  std::filesystem::create_directory(folder.file("not_yet"));
  EXPECT_EQ(client.call({"BGSAVE"}), "+Background saving started\r\n");
  await_background_save(server);
  EXPECT_EQ(client.call({"SET", "k", "x"}), "+OK\r\n");
  EXPECT_EQ(info(client, "rdb_last_bgsave_status"), "ok");
}

TEST(FailedSave, leaves_the_old_snapshot_and_no_other_file) {
  const ScratchFolder folder;
  RunningServer server(settings_in(folder.path()));
  WireClient client = server.connect();
  // A folder with the snapshot's name, which cannot be replaced.
  std::filesystem::create_directory(folder.file("dump.rdb"));
  std::ofstream(folder.file("dump.rdb/occupied")) << "x";
  client.call({"SET", "k", "v"});
  EXPECT_EQ(client.call({"SAVE"}), "-ERR\r\n");
  EXPECT_NE(server.log().find("cannot rename the snapshot"), std::string::npos);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(FullDisk, fails_the_save_and_is_survived) {
  // A file system that is always full.
  const ScratchFolder folder;
  std::filesystem::create_symlink("/dev/full", folder.file("temp-" + std::to_string(::getpid()) + ".rdb"));
  RunningServer server(settings_in(folder.path()));
  WireClient client = server.connect();
  client.call({"SET", "k", "v"});
  EXPECT_EQ(client.call({"SAVE"}), "-ERR\r\n");
  EXPECT_NE(server.log().find("No space left on device"), std::string::npos) << server.log();
  // The link was removed, as the temporary file would have been.
  EXPECT_EQ(client.call({"SAVE"}), "+OK\r\n");
}

TEST(FlushAll, gives_up_the_snapshot_and_empties_the_file) {
  const ScratchFolder folder;
  Settings settings = settings_in(folder.path());
  settings.save = "3600 1000000";
  RunningServer server(std::move(settings));
  WireClient client = server.connect();
  client.call({"SET", "k", "v"});
  client.call({"SAVE"});
  client.send(encode({"BGSAVE"}) + encode({"FLUSHALL"}));
  EXPECT_EQ(client.reply(), "+Background saving started\r\n");
  EXPECT_EQ(client.reply(), "+OK\r\n");
  EXPECT_EQ(info(client, "rdb_bgsave_in_progress"), "0");
  RunningServer second(settings_in(folder.path()));
  EXPECT_EQ(load(second), "loaded");
  EXPECT_EQ(second.connect().call({"DBSIZE"}), ":0\r\n");
}

TEST(Loading, says_what_is_wrong_with_the_file) {
  const ScratchFolder folder;
  RunningServer server(settings_in(folder.path()));
  EXPECT_EQ(load(server), "nothing");
  std::ofstream(folder.file("dump.rdb")) << "no snapshot at all";
  EXPECT_NE(load(server).find("this is no RDB file"), std::string::npos);
  WireClient client = server.connect();
  client.call({"SET", "k", std::string(1000, 'v')});
  client.call({"SAVE"});
  std::filesystem::resize_file(folder.file("dump.rdb"),
                               std::filesystem::file_size(folder.file("dump.rdb")) - 20);
  RunningServer second(settings_in(folder.path()));
  EXPECT_NE(load(second).find("end too early"), std::string::npos);
}

std::size_t buckets(RunningServer& server) {
  return server.run([](Server& s) { return s.databases[0]->records().bucket_count(); });
}

TEST(Loading, makes_the_table_for_as_many_keys_as_the_file_announces) {
  const ScratchFolder folder;
  {
    RunningServer first(settings_in(folder.path()));
    WireClient client = first.connect();
    for (int i = 0; i < 1000; ++i) client.call({"SET", "k" + std::to_string(i), std::string(40, 'v')});
    client.call({"SAVE"});
  }
  RunningServer server(settings_in(folder.path()));
  ASSERT_EQ(load(server), "loaded");
  EXPECT_EQ(buckets(server), 256u);
}

TEST(Loading, takes_no_memory_for_keys_that_the_file_only_announces) {
  const ScratchFolder folder;
  const std::string exa = "\x81\x10" + std::string(7, '\0');
  std::ofstream(folder.file("dump.rdb")) << "REDIS0010" << '\xfe' << '\0' << '\xfb' << exa << exa << '\0'
                                         << "\x01k\x01v" << '\xff' << std::string(8, '\0');
  RunningServer server(settings_in(folder.path()));
  ASSERT_EQ(load(server), "loaded");
  EXPECT_EQ(server.connect().call({"GET", "k"}), "$1\r\nv\r\n");
  EXPECT_LE(buckets(server), 2u);
}

TEST(Loading, answers_clients_that_it_is_loading) {
  const ScratchFolder folder;
  RunningServer server(settings_in(folder.path()));
  WireClient client = server.connect();
  client.call({"SET", "k", "v"});
  client.call({"SAVE"});
  server.run([](Server& s) { s.loading = LoadProgress{s.now_ms, 100, 50}; });
  EXPECT_EQ(client.call({"GET", "k"}), "-LOADING Redis is loading the dataset in memory\r\n");
  EXPECT_EQ(client.call({"BGSAVE"}).substr(0, 9), "-LOADING ");
  EXPECT_EQ(info(client, "loading"), "1");
  EXPECT_EQ(info(client, "loading_loaded_perc"), "50.00");
  server.run([](Server& s) { s.loading.reset(); });
  EXPECT_EQ(client.call({"GET", "k"}), "$1\r\nv\r\n");
}

struct Refused {
  const char* name;
  Words words;
  const char* answer;
};
class SnapshotSetting : public ::testing::TestWithParam<Refused> {};
TEST_P(SnapshotSetting, is_answered_as_in_redis) {
  const ScratchFolder folder;
  RunningServer server(settings_in(folder.path()));
  EXPECT_NE(server.connect().call(GetParam().words).find(GetParam().answer), std::string::npos);
}
const Refused settings_rows[] = {
    {"dir", {"CONFIG", "SET", "dir", "/"}, "can't set protected config"},
    {"dbfilename", {"CONFIG", "SET", "dbfilename", "x"}, "can't set protected config"},
    {"odd_save", {"CONFIG", "SET", "save", "1 2 3"}, "Invalid save parameters"},
    {"no_seconds", {"CONFIG", "SET", "save", "0 1"}, "Invalid save parameters"},
    {"words", {"CONFIG", "SET", "save", "a b"}, "Invalid save parameters"},
    {"good_save", {"CONFIG", "SET", "save", "900 1 300 10"}, "+OK"},
    {"no_save", {"CONFIG", "SET", "save", ""}, "+OK"},
};
INSTANTIATE_TEST_SUITE_P(Rows, SnapshotSetting, ::testing::ValuesIn(settings_rows),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(SnapshotSettings, name_no_file_outside_the_folder) {
  const ScratchFolder folder;
  Settings settings = settings_in(folder.path());
  settings.protected_configs = 2;
  RunningServer server(std::move(settings));
  WireClient client = server.connect();
  for (const char* name : {"../x", "/etc/x", "a/b", "..", ""})
    EXPECT_NE(client.call({"CONFIG", "SET", "dbfilename", name}).find("dbfilename can't be"),
              std::string::npos);
  EXPECT_EQ(client.call({"CONFIG", "SET", "dbfilename", "other.rdb"}), "+OK\r\n");
  client.call({"SAVE"});
  EXPECT_TRUE(std::filesystem::exists(folder.file("other.rdb")));
}

}  // namespace
}  // namespace weir::kv::testing
