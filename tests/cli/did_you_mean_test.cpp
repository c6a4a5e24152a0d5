// What is suggested for a mistyped command or option, by the function and by `weir`; and the version that
// each says.
#include "cli/weir/did_you_mean.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_weir.hpp"

namespace weir::command {
namespace {

using testing::EndsWith, testing::HasSubstr, testing::Not;

constexpr std::string_view commands[] = {"run",  "trace", "devices", "stat",
                                         "plan", "sim",   "rpc",     "completion"};

TEST(DidYouMean, names_the_nearest_and_nothing_that_is_far) {
  const struct {
    std::string_view word, meant;
  } rows[] = {{"paln", "plan"},
              {"plam", "plan"},
              {"rnu", "run"},
              {"device", "devices"},
              {"stats", "stat"},
              {"tarce", "trace"},
              {"competion", "completion"},
              {"", ""},
              {"server", ""},
              {"xyzzy", ""},
              {"plan", ""}};
  for (const auto& [word, meant] : rows)
    EXPECT_EQ(did_you_mean(word, commands),
              meant.empty() ? "" : "; did you mean '" + std::string(meant) + "'?")
        << word;
  EXPECT_EQ(did_you_mean(std::string(100000, 'p'), commands), "");
}

TEST(DidYouMean, takes_options_from_the_help) {
  constexpr std::string_view help = "  --json, --lib-dir DIR\n  --help   this text -- and no more\n";
  EXPECT_EQ(did_you_mean_option("--jsn", help), "; did you mean '--json'?");
  EXPECT_EQ(did_you_mean_option("--libdir=/usr", help), "; did you mean '--lib-dir'?");
  EXPECT_EQ(did_you_mean_option("--json", help), "");
  EXPECT_EQ(did_you_mean_option("jsn", help), "");
  EXPECT_EQ(did_you_mean_option("--zzzzzzzz", help), "");
}

TEST(WeirCommand, that_is_mistyped_is_answered_with_the_one_that_was_meant) {
  const struct {
    std::vector<std::string> words;
    std::string meant;
  } rows[] = {{{"paln"}, "'plan'"},
              {{"vresion"}, "'version'"},
              {{"run", "--devcies", "2", "--", "true"}, "'--devices'"},
              {{"trace", "--pcpa", "x", "--", "true"}, "'--pcap'"},
              {{"devices", "--jsno"}, "'--json'"},
              {{"stat", "--onec"}, "'--once'"},
              {{"plan", "x.toml", "--sonik", "out"}, "'--sonic'"},
              {{"rpc", "lst", "tcp://h:1"}, "'list'"},
              {{"rpc", "list", "--nams", "tcp://h:1"}, "'--names'"},
              {{"tensor", "gte", "h:1", "w"}, "'get'"}};
  for (const auto& [words, meant] : rows) {
    const auto ended = run_weir(words);
    EXPECT_EQ(ended.status, 2) << words.front();
    EXPECT_THAT(ended.out, HasSubstr("did you mean " + meant)) << words.front();
  }
}

TEST(WeirVersion, is_said_by_all_programs_alike) {
  const auto version = run_weir({"version"}).out;
  EXPECT_EQ(run_weir({"--version"}).out, version);
  ASSERT_TRUE(version.starts_with("weir ")) << version;
  const auto number = version.substr(5);
  const auto folder = fs::path(WEIR_PROGRAM).parent_path();
  for (const std::string program : {"weir-plan", "weir-sim", "weir-collector", "weir-rpc", "weir-tensor",
                                    "weir-cli", "weir-benchmark", "weir-server"}) {
    const auto ended = run_program(folder / program, {"--version"});
    EXPECT_EQ(ended.status, 0) << program;
    EXPECT_EQ(ended.out, program + " " + number);
  }
}

TEST(WeirCommand, that_is_a_program_of_its_own_and_not_there_says_which_to_build) {
  const TemporaryDirectory alone;
  fs::copy_file(WEIR_PROGRAM, alone.path() / "weir");
  const auto ended = run_program(alone.path() / "weir", {"plan", "--help"});
  EXPECT_EQ(ended.status, 127);
  EXPECT_THAT(ended.out, HasSubstr((alone.path() / "weir-plan").string() + " is not there"));
}

}  // namespace
}  // namespace weir::command
