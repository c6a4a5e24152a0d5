#include "command_syntax/usage.hpp"

namespace weir::command_syntax {
namespace {

constexpr std::string_view or_else = "|";

std::string text_of(const std::vector<Argument>& arguments, std::string_view between);

// Without the token in front.
std::string value_of(const Argument& one) {
  switch (one.type) {
    case ArgumentType::pure_token:
      return {};
    case ArgumentType::one_of:
      return text_of(one.arguments, or_else);
    case ArgumentType::block:
      return text_of(one.arguments, " ");
    default:
      return std::string(one.name);
  }
}

std::string with_token(const Argument& one, std::string_view value) {
  std::string text;
  if (one.has_token) text = one.token.empty() ? "\"\"" : one.token;
  if (!text.empty() && !value.empty()) text += ' ';
  return text.append(value);
}

// Without the brackets around.
std::string text_of(const Argument& one) {
  std::string value = value_of(one);
  std::string text = with_token(one, value);
  if (one.multiple) text += " [" + (one.multiple_token ? text : value) + " ...]";
  return text;
}

std::string text_of(const std::vector<Argument>& arguments, std::string_view between) {
  std::string text;
  for (const Argument& one : arguments) {
    if (!one.deprecated_since.empty()) continue;
    if (!text.empty()) text.append(between);
    const bool bracketed = one.optional && between != or_else;
    text.append(bracketed ? "[" + text_of(one) + "]" : text_of(one));
  }
  return text;
}

}  // namespace

std::string usage_of(const CommandSyntax& command) { return text_of(arguments_of(command), " "); }

}  // namespace weir::command_syntax
