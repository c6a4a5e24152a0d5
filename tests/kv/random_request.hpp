// Random requests for a command, made from its syntax (command_syntax/): most are accepted, some have their
// options in another order, and in some a value looks like an option.
#pragma once

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "command_syntax/command_syntax.hpp"

namespace weir::kv::testing {

// What the values of a request are taken from.
struct RequestValues {
  std::vector<std::string> keys;
  std::vector<std::string> texts{"a", "1", "0", "(2", "0-1", "$", ">"};
  // A value or key that looks like an option; empty: none does.
  std::vector<std::string> misleading{};
  std::string script = "return redis.call('exists', unpack(KEYS))";
  std::string sha1{};
};

class RandomRequest {
 public:
  RandomRequest(const RequestValues& values, std::mt19937& random) : values_(values), random_(random) {}

  std::vector<std::string> make(const command_syntax::CommandSyntax& command) {
    words_.clear();
    const std::size_t bar = command.name.find('|');
    words_.emplace_back(command.name.substr(0, bar));
    if (bar != std::string_view::npos) words_.emplace_back(command.name.substr(bar + 1));
    auto arguments = command_syntax::arguments_of(command);
    if (one_in(3)) shuffle_options(arguments);
    add_all(arguments);
    return words_;
  }

 private:
  using Argument = command_syntax::Argument;
  using Type = command_syntax::ArgumentType;

  bool one_in(unsigned n) { return random_() % n == 0; }
  const std::string& any_of(const std::vector<std::string>& all) { return all[random_() % all.size()]; }

  void shuffle_options(std::vector<Argument>& arguments) {
    const auto is_option = [](const Argument& one) { return one.has_token || one.optional; };
    auto first = arguments.end();
    while (first != arguments.begin() && is_option(*std::prev(first))) --first;
    // What takes the rest of the words, such as STREAMS, mostly stays the last.
    const auto end = first != arguments.end() && !one_in(8) ? std::prev(arguments.end()) : arguments.end();
    std::shuffle(first, end, random_);
  }

  void add_all(const std::vector<Argument>& arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].name == "numkeys" && i + 1 < arguments.size()) {
        add_counted(arguments[i + 1]);
        ++i;
      } else if (!arguments[i].optional || one_in(2)) {
        add(arguments[i]);
      }
    }
  }
  void add_counted(const Argument& keys) {
    const std::size_t number_at = words_.size();
    words_.emplace_back();
    const std::size_t count = keys.optional && one_in(3) ? 0 : 1 + random_() % 3;
    for (std::size_t i = 0; i < count; ++i) add_once(keys);
    const std::string wrong[] = {"0", "-1", "x", "9", "01", std::to_string(count + 1)};
    words_[number_at] = one_in(8) ? wrong[random_() % std::size(wrong)] : std::to_string(count);
  }
  void add(const Argument& argument) {
    const std::size_t times = argument.multiple ? 1 + random_() % 3 : 1;
    for (std::size_t i = 0; i < times; ++i) {
      if (argument.has_token && (i == 0 || argument.multiple_token)) words_.emplace_back(argument.token);
      add_once(argument);
    }
  }
  void add_once(const Argument& argument) {
    switch (argument.type) {
      case Type::pure_token:
        return;
      case Type::one_of:
        return add(argument.arguments[random_() % argument.arguments.size()]);
      case Type::block:
        // As many ids as keys.
        if (argument.name == "streams") return add_streams();
        return add_all(argument.arguments);
      default:
        words_.push_back(value_of(argument));
    }
  }
  void add_streams() {
    const std::size_t count = 1 + random_() % 2;
    for (std::size_t i = 0; i < count; ++i) words_.push_back(key());
    for (std::size_t i = 0; i < count; ++i) words_.emplace_back(one_in(2) ? "0" : ">");
  }
  std::string key() {
    return !values_.misleading.empty() && one_in(3) ? any_of(values_.misleading) : any_of(values_.keys);
  }
  std::string value_of(const Argument& argument) {
    if (argument.type == Type::key) return key();
    if (argument.name == "script") return values_.script;
    if (argument.name == "sha1") return values_.sha1;
    if (!values_.misleading.empty() && one_in(6)) return any_of(values_.misleading);
    if (argument.name == "timeout" || argument.name == "milliseconds") return "1";
    if (argument.type == Type::string) return any_of(values_.texts);
    if (argument.type == Type::unix_time) return "4000000000";
    if (argument.type == Type::pattern) return "a";
    return std::to_string(random_() % 3);
  }

  const RequestValues& values_;
  std::mt19937& random_;
  std::vector<std::string> words_;
};

}  // namespace weir::kv::testing
