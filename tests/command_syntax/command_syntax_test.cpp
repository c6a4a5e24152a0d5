// The notation of the table, every row of it, and how it is shown. That it says what Redis says is tested
// with a redis-server (tests/kv/oracle_test.cpp).
#include "command_syntax/command_syntax.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "command_syntax/usage.hpp"

namespace weir::command_syntax {
namespace {

// As the notation has it, so that what was not understood is missing.
std::string written(const std::vector<Argument>& arguments) {
  const auto quoted = [](std::string_view word) {
    const bool plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '-' || c == '_';
    });
    return plain ? std::string(word) : "'" + std::string(word) + "'";
  };
  std::string text;
  for (const Argument& one : arguments) {
    if (!text.empty()) text += ' ';
    text += quoted(one.name);
    constexpr std::string_view letters = " idukptob";
    if (one.type != ArgumentType::string)
      text.append(":").append(1, letters[static_cast<std::size_t>(one.type)]);
    if (one.has_token) text += "=" + quoted(one.token);
    if (!one.since.empty()) text.append("@").append(one.since);
    if (!one.deprecated_since.empty()) text.append("!").append(one.deprecated_since);
    if (one.key_specification >= 0) text += "#" + std::to_string(one.key_specification);
    if (one.optional) text += '?';
    if (one.multiple) text += '*';
    if (one.multiple_token) text += '+';
    if (!one.arguments.empty()) text += "(" + written(one.arguments) + ")";
  }
  return text;
}

TEST(CommandSyntax, of_every_row_is_read_whole) {
  for (const CommandSyntax& command : all_commands())
    EXPECT_EQ(written(arguments_of(command)), command.arguments) << command.name;
}

TEST(CommandSyntax, is_found_by_name_and_in_the_order_of_names) {
  EXPECT_TRUE(std::ranges::is_sorted(all_commands(), {}, &CommandSyntax::name));
  for (const CommandSyntax& command : all_commands()) EXPECT_EQ(find_command(command.name), &command);
  for (const char* name : {"", "GET", "gets", "zzz", "config|nothing"})
    EXPECT_EQ(find_command(name), nullptr) << name;
}

TEST(CommandSyntax, knows_types_tokens_versions_and_nesting) {
  const auto arguments = arguments_of(*find_command("set"));
  ASSERT_EQ(arguments.size(), 5u);
  EXPECT_EQ(arguments[0].type, ArgumentType::key);
  EXPECT_EQ(arguments[0].key_specification, 0);
  EXPECT_EQ(arguments[2].type, ArgumentType::one_of);
  EXPECT_TRUE(arguments[2].optional);
  ASSERT_EQ(arguments[2].arguments.size(), 3u);
  EXPECT_EQ(arguments[2].arguments[1].token, "XX");
  EXPECT_EQ(arguments[3].since, "6.2.0");
}

TEST(Usage, reads_as_people_write_it) {
  const struct {
    const char *name, *usage;
  } rows[] = {
      {"ping", "[message]"},
      {"get", "key"},
      {"del", "key [key ...]"},
      {"expire", "key seconds [NX|XX|GT|LT]"},
      {"set",
       "key value [NX|XX|IFEQ comparison-value] [GET] [EX seconds|PX milliseconds|EXAT "
       "unix-time-seconds|PXAT "
       "unix-time-milliseconds|"
       "KEEPTTL]"},
      {"mset", "key value [key value ...]"},
      {"sort",
       "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC|DESC] [ALPHA] [STORE "
       "destination]"},
      {"migrate",
       "host port key|\"\" destination-db timeout [COPY] [REPLACE] [AUTH password|AUTH2 username password] "
       "[KEYS key [key ...]]"},
      {"hsetex",
       "key [NX|XX] [FNX|FXX] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT "
       "unix-time-milliseconds|KEEPTTL] "
       "FIELDS numfields field value [field value ...]"},
      {"config|get", "parameter [parameter ...]"},
      {"multi", ""},
  };
  for (const auto& [name, usage] : rows) {
    ASSERT_NE(find_command(name), nullptr) << name;
    EXPECT_EQ(usage_of(*find_command(name)), usage) << name;
  }
}

}  // namespace
}  // namespace weir::command_syntax
