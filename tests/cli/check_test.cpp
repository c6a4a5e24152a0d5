// The parts of weir-check, on files that a server wrote and the test then damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "cli/check/checked_file.hpp"
#include "cli/check/file_set.hpp"
#include "cli/check/repair.hpp"
#include "cli/check/report.hpp"
#include "kv/aof/log_steps.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::check {
namespace {

namespace fs = std::filesystem;
using kv::testing::RunningServer, kv::testing::WireClient, kv::testing::quiet_settings;
using test::ScratchDirectory;
using testing::HasSubstr;

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// The data folder of a server that has ended: a log with a base, and a snapshot.
class DataFolder {
 public:
  DataFolder() {
    kv::Settings settings = quiet_settings();
    settings.appendonly = true;
    settings.dir = folder_.path();
    RunningServer server(settings);
    WireClient client = server.connect();
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"SET", "text", "value"},
                                               {"SET", "expires", "value", "EX", "1000"},
                                               {"RPUSH", "list", "a", std::string("\r\n*3\r\n", 6), ""},
                                               {"MULTI"},
                                               {"INCR", "n"},
                                               {"SADD", "set", "1", "2"},
                                               {"EXEC"},
                                               {"SELECT", "3"},
                                               {"HSET", "hash", "field", "value"},
                                               {"SAVE"}})
      EXPECT_NE(client.call(words)[0], '-') << words[0];
  }

  std::string path() const { return folder_.path(); }
  std::string file(const std::string& name) const { return folder_.file(name); }
  std::string increment() const { return file("appendonlydir/appendonly.aof.1.incr.aof"); }
  std::string snapshot() const { return file("dump.rdb"); }

 private:
  ScratchDirectory folder_;
};

CheckedFile checked(const std::string& path, Expected expected = Expected::anything) {
  auto file = check_file(path, expected);
  EXPECT_TRUE(file) << file.error();
  return file ? *file : CheckedFile{};
}

// Where the requests and transactions of a log end.
std::vector<std::uint64_t> ends_of_steps(std::string_view log) {
  kv::aof::LogSteps steps([&](char* place, std::size_t most) {
    const std::size_t n = log.copy(place, most);
    log.remove_prefix(n);
    return n;
  });
  std::vector<std::uint64_t> ends;
  for (auto next = steps.next(); next != kv::aof::LogSteps::Next::end; next = steps.next())
    if (next == kv::aof::LogSteps::Next::step) ends.push_back(steps.whole_bytes());
  ends.push_back(steps.whole_bytes());
  return ends;  // the first is 0, which is not a step
}

TEST(CheckedFile, that_is_whole_is_counted) {
  const DataFolder data;
  const CheckedFile log = checked(data.increment());
  EXPECT_TRUE(log.whole()) << log.why;
  ASSERT_TRUE(log.log);
  EXPECT_FALSE(log.snapshot);
  EXPECT_EQ(log.log->transactions, 1u);
  EXPECT_EQ(log.log->requests, 8u);  // the server puts a SELECT before the first
  EXPECT_EQ(log.whole_bytes, log.size);

  const CheckedFile snapshot = checked(data.snapshot());
  EXPECT_TRUE(snapshot.whole()) << snapshot.why;
  ASSERT_TRUE(snapshot.snapshot);
  EXPECT_FALSE(snapshot.log);
  EXPECT_EQ(snapshot.snapshot->keys, 6u);
  EXPECT_EQ(snapshot.snapshot->expiring, 1u);
  EXPECT_EQ(snapshot.snapshot->databases, 2u);
  EXPECT_EQ(snapshot.snapshot->version, 10);
}

TEST(CheckedFile, of_a_log_that_ends_anywhere_is_cut_to_its_last_whole_step) {
  const DataFolder data;
  const ScratchDirectory folder;
  const std::string whole = bytes_of(data.increment()), path = folder.file("a.aof");
  const std::vector<std::uint64_t> ends = ends_of_steps(whole);
  ASSERT_EQ(ends.size(), 8u);  // seven steps
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const std::uint64_t end = *(std::ranges::upper_bound(ends, size) - 1);
    write(path, whole.substr(0, size));
    const CheckedFile file = checked(path, Expected::log);
    EXPECT_EQ(file.state, end == size ? State::whole : State::truncated) << size;
    EXPECT_EQ(file.whole_bytes, end) << size;
    ASSERT_EQ(can_be_cut(file, true), end != size) << size;
    if (end == size) continue;
    EXPECT_FALSE(can_be_cut(file, false));
    const auto kept = cut(file);
    ASSERT_TRUE(kept) << kept.error();
    EXPECT_EQ(bytes_of(path), whole.substr(0, end)) << size;
    EXPECT_EQ(bytes_of(*kept), whole.substr(end, size - end)) << size;
    EXPECT_TRUE(checked(path, Expected::log).whole()) << size;
  }
}

TEST(CheckedFile, of_a_log_says_where_bytes_are_that_cannot_be) {
  const DataFolder data;
  const ScratchDirectory folder;
  const std::string whole = bytes_of(data.increment()), path = folder.file("a.aof");
  const std::uint64_t second = ends_of_steps(whole)[1];
  const struct {
    const char* name;
    std::string bytes;
    State state;
    std::uint64_t whole_bytes;
  } rows[] = {
      {"zeros_behind_it", whole + std::string(512, '\0'), State::damaged, whole.size()},
      {"another_letter_where_a_request_begins", std::string(whole).replace(second, 1, "x"), State::damaged,
       second},
      {"a_command_that_does_not_exist", whole + "*1\r\n$4\r\nNONE\r\n", State::refused, whole.size()},
      {"a_command_that_only_reads", whole + "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", State::refused, whole.size()},
      {"a_command_with_too_few_words", whole + "*2\r\n$3\r\nSET\r\n$1\r\nk\r\n", State::refused,
       whole.size()},
      {"an_exec_without_multi", whole + "*1\r\n$4\r\nEXEC\r\n", State::damaged, whole.size()},
      {"a_multi_in_a_multi", whole + "*1\r\n$5\r\nMULTI\r\n*1\r\n$5\r\nMULTI\r\n", State::damaged,
       whole.size()},
      {"a_length_that_cannot_be", whole + "*1\r\n$99999999999\r\n", State::damaged, whole.size()},
      {"a_length_that_is_not_there", whole + "*2\r\n$4000000000\r\nab", State::truncated, whole.size()},
      {"a_comment", whole + "#TS:1700000000\r\n", State::whole, whole.size() + 16},
      {"nothing", "", State::whole, 0},
  };
  for (const auto& row : rows) {
    write(path, row.bytes);
    const CheckedFile file = checked(path, Expected::log);
    EXPECT_EQ(file.state, row.state) << row.name << ": " << file.why;
    EXPECT_EQ(file.whole_bytes, row.whole_bytes) << row.name;
    EXPECT_EQ(file.why.empty(), row.state == State::whole) << row.name;
    EXPECT_EQ(can_be_cut(file, true), row.state == State::damaged || row.state == State::truncated)
        << row.name;
  }
}

TEST(CheckedFile, of_a_snapshot_is_whole_or_not_and_never_cut) {
  const DataFolder data;
  const ScratchDirectory folder;
  const std::string whole = bytes_of(data.snapshot()), path = folder.file("a.rdb");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write(path, whole.substr(0, size));
    const CheckedFile file = checked(path, Expected::snapshot);
    EXPECT_FALSE(file.whole()) << size;
    EXPECT_FALSE(can_be_cut(file, true)) << size;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    write(path, bytes);
    EXPECT_FALSE(checked(path, Expected::snapshot).whole()) << at;
  }
  write(path, whole + "rest");
  EXPECT_THAT(checked(path).why, HasSubstr("4 bytes follow its end"));
}

TEST(CheckedFile, that_is_a_snapshot_with_a_log_behind_is_both) {
  const DataFolder data;
  const ScratchDirectory folder;
  const std::string snapshot = bytes_of(data.snapshot()), log = bytes_of(data.increment());
  write(folder.file("appendonly.aof"), snapshot + log.substr(0, log.size() - 1));
  const CheckedFile file = checked(folder.file("appendonly.aof"));
  ASSERT_TRUE(file.snapshot && file.log);
  EXPECT_EQ(file.state, State::truncated);
  const auto ends = ends_of_steps(log);
  EXPECT_EQ(file.whole_bytes, snapshot.size() + ends[ends.size() - 2]);
}

TEST(CheckedFile, that_somebody_has_open_is_not_cut) {
  const ScratchDirectory folder;
  const std::string path = folder.file("a.aof"), bytes = "*1\r\n$7\r\nFLUSH";
  write(path, bytes);
  const CheckedFile file = checked(path, Expected::log);
  {
    const std::ofstream server(path, std::ios::app);
    const auto refused = cut(file);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error(), HasSubstr("stop the server first"));
    EXPECT_EQ(bytes_of(path), bytes);
  }
  write(path, bytes + "ALL\r\n");
  ASSERT_FALSE(cut(file));  // it has grown
  write(path, bytes);
  EXPECT_TRUE(cut(file));
}

TEST(FileSet, of_a_folder_has_what_a_server_would_read) {
  const DataFolder data;
  write(data.file("temp-1.rdb"), "REDIS");  // an unfinished snapshot
  const auto sets = files_meant(data.path());
  ASSERT_TRUE(sets) << sets.error();
  ASSERT_EQ(sets->size(), 2u);
  EXPECT_EQ(sets->front().files.front().path, data.snapshot());
  ASSERT_EQ(sets->back().files.size(), 1u);  // a log that began empty has no base
  EXPECT_EQ(sets->back().files.back().path, data.increment());

  const auto same = files_meant(data.file("appendonlydir"));
  ASSERT_TRUE(same);
  ASSERT_EQ(same->size(), 1u);
  EXPECT_EQ(same->front().manifest, data.file("appendonlydir/appendonly.aof.manifest"));
}

TEST(FileSet, of_a_log_before_redis_7_is_its_one_file) {
  const ScratchDirectory folder;
  write(folder.file("appendonly.aof"), "");
  const auto sets = files_meant(folder.path());
  ASSERT_TRUE(sets) << sets.error();
  ASSERT_EQ(sets->size(), 1u);
  EXPECT_EQ(sets->front().files.front().expected, Expected::log);
}

TEST(FileSet, leads_to_no_file_outside_of_the_manifests_folder) {
  const ScratchDirectory folder;
  const std::map<std::string, std::string> rows{
      {"file ../secret seq 1 type i\n", "Invalid AOF manifest file format"},
      {"file /etc/passwd seq 1 type b\n", "Invalid AOF manifest file format"},
      {"", "Found an empty AOF manifest"},
      {std::string(2 << 20, '#') + "\n", "it is too large for a manifest"},
  };
  for (const auto& [text, why] : rows) {
    write(folder.file("a.manifest"), text);
    const auto sets = files_meant(folder.file("a.manifest"));
    ASSERT_TRUE(sets) << sets.error();
    EXPECT_EQ(sets->front().wrong, why);
    EXPECT_TRUE(sets->front().files.empty());
  }
}

TEST(FileSet, is_refused_where_there_is_nothing_to_look_at) {
  const ScratchDirectory folder;
  EXPECT_THAT(files_meant(folder.path()).error(), HasSubstr("there is no snapshot"));
  EXPECT_THAT(files_meant(folder.file("none")).error(), HasSubstr("No such file"));
}

}  // namespace
}  // namespace weir::check
