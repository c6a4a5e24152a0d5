// `weir plan` as scripts see it: exit statuses, which files are written where, and no partial output.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/weir/command.hpp"
#include "cli/weir/whole_file.hpp"
#include "tests/scratch_directory.hpp"

namespace weir::command {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class PlanCommandTest : public testing::Test {
 protected:
  struct Ended {
    int status;
    std::string out, err;
  };
  static Ended run(std::vector<std::string> words) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int status = plan(words);
    return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
    return (directory_ / name).string();
  }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  std::vector<std::string> entries() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(directory_)) out.push_back(entry.path().filename());
    return out;
  }

  const test::ScratchDirectory scratch_;
  const fs::path directory_ = scratch_.path();
};

std::string shipped(const std::string& name) { return NETWORKS_DIR "/" + name + ".toml"; }

TEST_F(PlanCommandTest, statuses_are_those_of_the_manual) {
  const auto wrong = write("wrong.toml", "nmae = \"x\"\n");
  const auto warned = write("warned.toml", [] {
    std::ifstream file(shipped("fat-tree-320"));
    std::ostringstream text;
    text << file.rdbuf() << "[plan]\nkmax = \"20MB\"\n";
    return text.str();
  }());
  struct Row {
    std::vector<std::string> words;
    int status;
  };
  const Row rows[] = {
      {{shipped("reference-rig"), "--strict"}, 0},
      {{warned}, 0},
      {{warned, "--strict"}, 1},
      {{shipped("ring")}, 1},
      {{"--models"}, 0},
      {{"--help"}, 0},
      {{}, 2},
      {{"--format", "yaml", shipped("ring")}, 2},
      {{"--format", "html", "--json", shipped("ring")}, 2},
      {{"--nonsense"}, 2},
      {{wrong}, 3},
      {{path("gone.toml")}, 3},
      {{directory_.string()}, 3},
      {{shipped("ring"), "-o", "/proc/nowhere/plan.txt"}, 4},
  };
  for (const auto& [words, status] : rows) {
    const auto ended = run(words);
    EXPECT_EQ(ended.status, status) << testing::PrintToString(words) << ended.err;
  }
}

TEST_F(PlanCommandTest, wrong_file_is_told_by_place_and_leaves_nothing) {
  const auto wrong = write("wrong.toml", "name = 3\n");
  const auto ended = run({wrong, "-o", path("plan.html"), "-f", "html", "--sonic", path("out")});
  EXPECT_EQ(ended.status, 3);
  EXPECT_THAT(ended.err, HasSubstr(wrong + ":1:8: 'name' is an integer; write a string in quotes\n"));
  EXPECT_THAT(ended.out, IsEmpty());
  EXPECT_EQ(entries(), std::vector<std::string>{"wrong.toml"});
}

TEST_F(PlanCommandTest, each_switch_gets_its_config_db) {
  const auto ended = run({shipped("fat-tree-320"), "--sonic", path("out"), "-o", path("plan.txt")});
  EXPECT_EQ(ended.status, 0) << ended.err;
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path("out")))
    if (entry.is_regular_file()) {
      EXPECT_EQ(entry.path().filename(), "config_db.json");
      ++files;
    }
  EXPECT_EQ(files, 56u);
  EXPECT_TRUE(fs::exists(path("out/tor1-1/config_db.json")));
}

TEST_F(PlanCommandTest, differences_from_what_switches_have_are_printed_alone) {
  ASSERT_EQ(run({shipped("fat-tree-320"), "--sonic", path("running"), "-o", path("plan.txt")}).status, 0);
  const auto same = run({shipped("fat-tree-320"), "--diff", path("running")});
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_THAT(same.out, IsEmpty());
  const auto file = path("running/tor1-1/config_db.json");
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  auto changed = text.str();
  const auto at = changed.find("\"ecn\": \"ecn_all\"");
  ASSERT_NE(at, changed.npos);
  std::ofstream(file) << changed.replace(at, 16, "\"ecn\": \"ecn_none\"");
  const auto one = run({shipped("fat-tree-320"), "--diff", path("running")});
  EXPECT_THAT(one.out, testing::MatchesRegex(
                           "tor1-1: WRED_PROFILE\\|WEIR_LOSSLESS_[0-9]+\\|ecn: ecn_none -> ecn_all\n"));
  fs::remove(file);
  EXPECT_EQ(run({shipped("fat-tree-320"), "--diff", path("running")}).status, 3);
}

TEST_F(PlanCommandTest, imported_cabling_is_planned) {
  const auto lab = write("topology-data.json",
                         R"({"type": "clab", "nodes": {"a": {"kind": "linux"}, "b": {"kind": "linux"}},
      "links": [{"a": {"node": "s", "interface": "eth1"}, "z": {"node": "a", "interface": "eth1"}},
                {"a": {"node": "s", "interface": "eth2"}, "z": {"node": "b", "interface": "eth1"}}]})");
  const auto made = run({"--import", lab, "--model", "sn4700", "--speed", "400G", "-o", path("lab.toml")});
  EXPECT_EQ(made.status, 0) << made.err;
  const auto planned = run({path("lab.toml")});
  EXPECT_EQ(planned.status, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("sn4700"));
  EXPECT_EQ(run({"--import", path("lab.toml")}).status, 3);
  EXPECT_EQ(run({"--speed", "400G", path("lab.toml")}).status, 2);
}

TEST_F(PlanCommandTest, network_with_faults_gets_no_configuration) {
  const auto ended = run({shipped("ring"), "--sonic", path("out"), "--json"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.err, HasSubstr("s1 -> s2 -> s3 -> s4 -> s5 -> s1"));
  EXPECT_THAT(ended.out, StartsWith("{"));
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(PlanCommandTest, file_that_cannot_be_replaced_stays_as_it_was) {
  fs::create_directory(path("plan.txt"));
  EXPECT_THAT(write_whole_file(path("plan.txt"), "text"), HasSubstr("cannot write"));
  EXPECT_EQ(entries(), std::vector<std::string>{"plan.txt"});
  EXPECT_THAT(write_whole_file(path("made/on/the/way.txt"), "text"), IsEmpty());
  std::ifstream file(path("made/on/the/way.txt"));
  std::string text;
  file >> text;
  EXPECT_EQ(text, "text");
}

TEST_F(PlanCommandTest, pipe_or_device_is_written_to_and_not_replaced) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_THAT(write_whole_file(path("pipe"), "text"), IsEmpty());
  char got[8] = {};
  EXPECT_EQ(::read(reader, got, sizeof got), 4);
  EXPECT_STREQ(got, "text");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  ASSERT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_THAT(write_whole_file("/dev/full", "text"), HasSubstr("cannot write /dev/full: No space left"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(PlanCommandTest, directory_is_made_before_there_is_something_to_write) {
  EXPECT_THAT(make_directory(path("on/the/way")), IsEmpty());
  EXPECT_TRUE(fs::is_directory(path("on/the/way")));
  write("file", "");
  EXPECT_THAT(make_directory(path("file")), HasSubstr("cannot make the directory"));
}

}  // namespace
}  // namespace weir::command
