// Words, hints and texts of weir-cli. redis_cli_oracle.py compares its output with redis-cli's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/shell/hints.hpp"
#include "cli/shell/options.hpp"
#include "cli/shell/quoting.hpp"
#include "cli/shell/secret_lines.hpp"

namespace weir::shell {
namespace {

using namespace std::string_literals;
using Words = std::vector<std::string>;

TEST(SplitWords, knows_both_kinds_of_quotes) {
  const std::pair<std::string, Words> cases[] = {
      {"", {}},
      {"  set  a\tb ", {"set", "a", "b"}},
      {R"("")", {""}},
      {R"("a b" 'c d')", {"a b", "c d"}},
      {R"("\x41\n\r\t\b\a\"\\\q")", {"A\n\r\t\b\a\"\\q"}},
      {R"('it\'s \n')", {"it's \\n"}},
      {R"(ab"cd")", {"abcd"}},
      {"\"a\\x00b\"", {"a\0b"s}},
  };
  for (const auto& [line, words] : cases) EXPECT_EQ(split_words(line), words) << line;
}

TEST(SplitWords, refuses_quotes_that_do_not_close_or_run_into_text) {
  for (const auto* line : {"\"abc", "'abc", "\"abc\"def", "'a'b", "\"abc\\", "\"abc\\\""})
    EXPECT_EQ(split_words(line), std::nullopt) << line;
}

TEST(History, has_no_line_that_may_hold_a_password) {
  for (const auto* line :
       {"auth pw", "AUTH user pw", "3 auth pw", "\"auth\" pw", "hello 3 AUTH user pw", "acl setuser bert >pw",
        "migrate h 1 k 0 9 AUTH pw", "config set requirepass pw", "CONFIG SET REQUIREPASS pw",
        "config set maxmemory 0 requirepass pw", "config set masterauth pw",
        "config set tls-key-file-pass pw", "auth \"pw", "config set requirepass 'pw"})
    EXPECT_TRUE(may_hold_secret(line)) << line;
  for (const auto* line : {"", "get auth", "set pass word", "hello 3", "config get requirepass",
                           "config set maxmemory 0", "5 ping", "5", "acl whoami"})
    EXPECT_FALSE(may_hold_secret(line)) << line;
}

TEST(Quoted, can_be_read_back) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(split_words(shell::quoted(all)), Words{all});
}

TEST(Hint, shows_the_arguments_that_are_still_missing) {
  const std::pair<std::string, std::string> cases[] = {
      {"GET", "key"},
      {"get ", "key"},
      {"get k", "key"},
      {"get k ", ""},
      {"SETEX k ", "seconds value"},
      {"setex k 10 ", "value"},
      {"nosuch ", ""},
      {"config", ""},
      {"config get ", "parameter [parameter ...]"},
      {"", ""},
      {"\"open", ""},
      {"expire k 10 ", "[NX|XX|GT|LT]"},
  };
  for (const auto& [line, hint] : cases) EXPECT_EQ(hint_for(line), hint) << line;
}

TEST(Completion, ignores_case_and_offers_subcommands) {
  EXPECT_THAT(completions_of("lpo"), testing::ElementsAre("LPOP", "LPOS"));
  EXPECT_THAT(completions_of("config "), testing::ElementsAre("CONFIG GET", "CONFIG HELP", "CONFIG RESETSTAT",
                                                              "CONFIG REWRITE", "CONFIG SET"));
  EXPECT_TRUE(completions_of("zzz").empty());
}

TEST(Help, is_on_the_command_or_in_general) {
  EXPECT_EQ(help_on({"get"}), "  GET key\n");
  EXPECT_THAT(help_on({"config"}), testing::HasSubstr("CONFIG SET parameter"));
  EXPECT_THAT(help_on({}), testing::HasSubstr("help <command>"));
}

TEST(Options, stop_where_the_command_begins) {
  const Words arguments{"-n", "2", "-r", "3", "SET", "-p", "--raw"};
  const auto options = parse_options(arguments);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->server.login.database, 2);
  EXPECT_EQ(options->repeat, 3);
  EXPECT_EQ(options->command, (Words{"SET", "-p", "--raw"}));
}

TEST(Options, that_ask_for_json_ask_for_resp3) {
  EXPECT_EQ(parse_options(Words{"--json"})->server.login.resp, 3);
  EXPECT_EQ(parse_options(Words{"-2", "--json"})->server.login.resp, 2);
}

TEST(Options, that_are_unknown_or_incomplete_are_refused) {
  for (const Words& arguments :
       {Words{"--nosuch"}, Words{"-n"}, Words{"-i", "soon"}, Words{"--show-pushes", "maybe"},
        Words{"--quoted-pattern", "\"open"}, Words{"-x", "-X", "tag"}})
    EXPECT_FALSE(parse_options(arguments)) << testing::PrintToString(arguments);
}

TEST(Options, take_quoted_arguments_of_one_word_each) {
  auto options = parse_options(Words{"--quoted-input", "ECHO", R"("\x41 b")"}).value();
  EXPECT_TRUE(unquote_command(options));
  EXPECT_EQ(options.command, (Words{"ECHO", "A b"}));
  for (const auto* argument : {"\"open", "\"a\" \"b\"", ""}) {
    auto unsound = parse_options(Words{"--quoted-input", "ECHO", argument}).value();
    EXPECT_FALSE(unquote_command(unsound)) << argument;
  }
}

}  // namespace
}  // namespace weir::shell
