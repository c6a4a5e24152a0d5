#include "command_syntax/command_syntax.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace weir::command_syntax {
namespace {

constexpr std::pair<char, ArgumentType> types[] = {
    {'i', ArgumentType::integer}, {'d', ArgumentType::real},    {'u', ArgumentType::unix_time},
    {'k', ArgumentType::key},     {'p', ArgumentType::pattern}, {'t', ArgumentType::pure_token},
    {'o', ArgumentType::one_of},  {'b', ArgumentType::block}};

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}
bool is_of_a_version(char c) { return (c >= '0' && c <= '9') || c == '.'; }

// The table is ours, so its notation is taken to be right; a test reads every row.
class Reader {
 public:
  explicit Reader(std::string_view text) : left_(text) {}

  std::vector<Argument> arguments() {
    std::vector<Argument> all;
    while (!left_.empty() && left_.front() != ')') {
      all.push_back(argument());
      skip(' ');
    }
    return all;
  }

 private:
  Argument argument() {
    Argument one;
    one.name = word();
    if (skip(':')) {
      one.type = std::ranges::find(types, left_.front(), &std::pair<char, ArgumentType>::first)->second;
      left_.remove_prefix(1);
    }
    one.has_token = skip('=');
    if (one.has_token) one.token = word();
    if (skip('@')) one.since = take_while(is_of_a_version);
    if (skip('!')) one.deprecated_since = take_while(is_of_a_version);
    if (skip('#')) {
      const std::string_view digits = take_while(is_of_a_version);
      std::from_chars(digits.data(), digits.data() + digits.size(), one.key_specification);
    }
    one.optional = skip('?');
    one.multiple = skip('*');
    one.multiple_token = skip('+');
    if (skip('(')) {
      one.arguments = arguments();
      skip(')');
    }
    return one;
  }

  bool skip(char c) {
    if (!left_.starts_with(c)) return false;
    left_.remove_prefix(1);
    return true;
  }
  template <class Belongs>
  std::string_view take_while(Belongs belongs) {
    const auto end = std::ranges::find_if_not(left_, belongs);
    const std::string_view taken(left_.begin(), end);
    left_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view word() {
    if (!skip('\'')) return take_while(is_plain);
    const std::string_view quoted = take_while([](char c) { return c != '\''; });
    skip('\'');
    return quoted;
  }

  std::string_view left_;
};

}  // namespace

std::string_view name_of(ArgumentType type) {
  switch (type) {
    case ArgumentType::integer:
      return "integer";
    case ArgumentType::real:
      return "double";
    case ArgumentType::unix_time:
      return "unix-time";
    case ArgumentType::key:
      return "key";
    case ArgumentType::pattern:
      return "pattern";
    case ArgumentType::pure_token:
      return "pure-token";
    case ArgumentType::one_of:
      return "oneof";
    case ArgumentType::block:
      return "block";
    default:
      return "string";
  }
}

const CommandSyntax* find_command(std::string_view name) {
  const auto all = all_commands();
  const auto found = std::ranges::lower_bound(all, name, {}, &CommandSyntax::name);
  return found != all.end() && found->name == name ? &*found : nullptr;
}

std::vector<Argument> arguments_of(const CommandSyntax& command) {
  return Reader(command.arguments).arguments();
}

}  // namespace weir::command_syntax
