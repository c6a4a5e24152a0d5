// The suggestions for a mistyped command or option, and the version that each program prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_weir.hpp"

namespace weir::command {
namespace {

using testing::EndsWith, testing::HasSubstr;

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

TEST(WeirCommand, words_all_complaints_about_options_alike) {
  const struct {
    std::vector<std::string> words;
    std::string says;
  } rows[] = {
      {{"devices", "--jsn"},
       "weir devices: unknown option --jsn; did you mean '--json'?; see weir devices --help\n"},
      {{"devices", "--lib-dir"}, "weir devices: --lib-dir needs a value; see weir devices --help\n"},
      {{"sockets", "--jsn"},
       "weir sockets: unknown option --jsn; did you mean '--json'?; see weir sockets --help\n"},
      {{"run", "--mtu"}, "weir run: --mtu needs a value; see weir run --help\n"},
      {{"run", "--nothing-like-it"}, "weir run: unknown option --nothing-like-it; see weir run --help\n"},
      {{"stat", "--jsn"}, "weir stat: unknown option --jsn; did you mean '--json'?; see weir stat --help\n"},
      {{"rpc", "list", "--jsn"},
       "weir rpc: unknown option --jsn; did you mean '--json'?; see weir rpc --help\n"},
      {{"check"}, "weir: 'check' is no command; see weir-check --help\n"},
  };
  for (const auto& [words, says] : rows) {
    const auto ended = run_weir(words);
    EXPECT_EQ(ended.status, 2) << says;
    EXPECT_EQ(ended.out, says);
  }
}

TEST(ProgramsLikeRediss, answer_a_mistyped_option_with_the_one_that_was_meant) {
  const struct {
    std::string program, word, says;
    int status;
  } rows[] = {
      {"weir-cli", "--pip", "args for: '--pip'; did you mean '--pipe'?", 1},
      {"weir-cli", "--cacret", "args for: '--cacret'; did you mean '--cacert'?", 1},
      {"weir-cli", "-p", "args for: '-p', which wants a value", 1},
      {"weir-cli", "--nothing-like-it", "args for: '--nothing-like-it'", 1},
      {"weir-benchmark", "--comprae", "args for: '--comprae'; did you mean '--compare'?", 1},
      {"weir-benchmark", "-c", "args for: '-c', which wants a value", 1},
      {"weir-server", "--prot", "unknown option --prot; did you mean '--port'?", 2},
      {"weir-server", "--tls-cert-fle", "unknown option --tls-cert-fle; did you mean '--tls-cert-file'?", 2},
      {"weir-server", "--port", "--port needs a value", 2},
      {"weir-plan", "stray words", "unexpected argument", 2},
  };
  for (const auto& [program, word, says, status] : rows) {
    std::vector<std::string> words{word};
    if (program == "weir-plan") words = {"a.toml", "b.toml"};
    const auto ended = run_program(fs::path(WEIR_PROGRAM).parent_path() / program, words);
    EXPECT_EQ(ended.status, status) << program << " " << word;
    const auto name = program == "weir-plan" ? "weir plan" : program;
    EXPECT_EQ(ended.out.find(name + ": "), 0u) << ended.out;
    EXPECT_THAT(ended.out, HasSubstr(says));
    EXPECT_THAT(ended.out, EndsWith("; see " + name + " --help\n"));
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
