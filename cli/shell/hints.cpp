#include "cli/shell/hints.hpp"

#include <algorithm>
#include <cctype>

#include "cli/shell/quoting.hpp"
#include "command_syntax/usage.hpp"

namespace weir::shell {
namespace {

struct Usage {
  std::string name;       // "CONFIG GET"
  std::string arguments;  // "pattern [pattern ...]"
};

std::vector<Usage> make_table() {
  std::vector<Usage> table;
  for (const auto& command : command_syntax::all_commands()) {
    std::string name(command.name);
    const auto is_its = [&](const auto& other) { return other.name.starts_with(name + "|"); };
    if (std::ranges::any_of(command_syntax::all_commands(), is_its)) continue;  // says nothing by itself
    std::ranges::replace(name, '|', ' ');
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    table.push_back({name, usage_of(command)});
  }
  return table;
}

const std::vector<Usage>& table() {
  static const std::vector<Usage> made = make_table();
  return made;
}

std::size_t words_in(std::string_view name) { return name.find(' ') == std::string_view::npos ? 1 : 2; }

// The arguments of a syntax line; brackets stay together: "[EX seconds]" is one argument.
std::vector<std::string_view> arguments_in(std::string_view syntax) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= syntax.size(); ++i) {
    if (i < syntax.size() && syntax[i] == '[') ++depth;
    if (i < syntax.size() && syntax[i] == ']') --depth;
    if (i < syntax.size() && (syntax[i] != ' ' || depth > 0)) continue;
    if (i > start) parts.push_back(syntax.substr(start, i - start));
    start = i + 1;
  }
  return parts;
}

// The command with which these words begin; nullptr: none.
const Usage* syntax_of(const std::vector<std::string>& words) {
  for (const auto& entry : table()) {
    const auto count = words_in(entry.name);
    if (words.size() < count) continue;
    if (same_word(entry.name, count == 1 ? words[0] : words[0] + " " + words[1])) return &entry;
  }
  return nullptr;
}

}  // namespace

std::string hint_for(std::string_view line) {
  const auto words = split_words(line);
  if (!words || words->empty()) return {};
  const auto* const syntax = syntax_of(*words);
  if (!syntax) return {};
  // The name of the word being typed stays visible.
  const bool typing = !line.empty() && !std::isspace(static_cast<unsigned char>(line.back()));
  auto given = words->size() - words_in(syntax->name);
  if (typing && given > 0) --given;
  std::string hint;
  const auto arguments = arguments_in(syntax->arguments);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool optional = arguments[i].starts_with('[');
    if (i < given && !optional) continue;
    hint.append(hint.empty() ? "" : " ").append(arguments[i]);
  }
  return hint;
}

std::vector<std::string> completions_of(std::string_view start) {
  std::vector<std::string> names;
  for (const auto& entry : table())
    if (entry.name.size() >= start.size() && same_word(entry.name.substr(0, start.size()), start))
      names.emplace_back(entry.name);
  return names;
}

std::string help_on(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& entry : table())
    if (!words.empty() &&
        (syntax_of(words) == &entry ||
         (words.size() == 1 && entry.name.size() > words[0].size() && entry.name[words[0].size()] == ' ' &&
          same_word(entry.name.substr(0, words[0].size()), words[0]))))
      text.append("  ").append(entry.name).append(" ").append(entry.arguments).append("\n");
  if (!text.empty()) return text;
  return "  help <command>     its arguments\n"
         "  <tab>              completes commands; their arguments are shown while you type\n"
         "  <n> <command>      runs it n times\n"
         "  :set nohints       does not show them; :set hints shows them again\n"
         "  connect <host> <port>, clear, quit\n";
}

}  // namespace weir::shell
