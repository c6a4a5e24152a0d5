// The only file that includes toml++, which is slow to compile.
#include "fabric/topology/document_tree.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <utility>

namespace weir::fabric {
namespace {

// Both toml++ and copied() recurse for each level, and toml++ limits only brackets: a dotted key of 40,000
// parts is 40,000 tables deep.
constexpr std::size_t deepest = 64;

// The first line where the text nests deeper; 0: nowhere. Counts brackets and the dots in keys and headers,
// outside of strings and comments. The parser will reject text that is not TOML.
std::uint32_t too_deep_at(std::string_view text) {
  std::uint32_t line = 1;
  std::size_t depth = 0, header = 0, dots = 0;
  std::vector<std::size_t> opened;  // for each open bracket
  bool line_begins = true, in_header = false;
  const auto skip_to = [&](std::size_t at, std::string_view end, bool escapes) {
    while (at < text.size() && !text.substr(at).starts_with(end)) {
      if (text[at] == '\n') {
        if (end.size() == 1) return at - 1;  // such a string ends with its line
        ++line;
      }
      at += escapes && text[at] == '\\' && at + 1 < text.size() && text[at + 1] != '\n' ? 2 : 1;
    }
    return at + end.size() - 1;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const std::string_view rest = text.substr(i);
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (c == '"' || c == '\'') {
      const std::string_view quotes =
          rest.starts_with(c == '"' ? "\"\"\"" : "'''") ? rest.substr(0, 3) : rest.substr(0, 1);
      i = skip_to(i + quotes.size(), quotes, c == '"');
    } else if (c == '\n') {
      ++line;
      line_begins = true;
      if (in_header) header = std::exchange(dots, 0);
      in_header = false;
      if (opened.empty()) dots = 0;
      continue;
    } else if (c == '[' && line_begins && opened.empty()) {
      in_header = true;
      header = 0;
    } else if (!in_header && (c == '[' || c == '{')) {
      opened.push_back(dots + 1);
      depth += dots + 1;
      dots = 0;
    } else if (!in_header && (c == ']' || c == '}') && !opened.empty()) {
      depth -= opened.back();
      opened.pop_back();
      dots = 0;
    } else if (c == ',') {
      dots = 0;
    } else if (c == '.') {
      ++dots;
    }
    if (c != ' ' && c != '\t') line_begins = false;
    if (header + depth + dots > deepest) return line;
  }
  return 0;
}

TomlValue copied(const toml::node& node) {
  TomlValue out;
  out.line = node.source().begin.line;
  out.column = node.source().begin.column;
  if (const auto* boolean = node.as_boolean()) {
    out.value = boolean->get();
  } else if (const auto* integer = node.as_integer()) {
    out.value = integer->get();
  } else if (const auto* number = node.as_floating_point()) {
    out.value = number->get();
  } else if (const auto* string = node.as_string()) {
    out.value = string->get();
  } else if (const auto* array = node.as_array()) {
    std::vector<TomlValue> values;
    values.reserve(array->size());
    for (const auto& element : *array) values.push_back(copied(element));
    out.value = std::move(values);
  } else if (const auto* table = node.as_table()) {
    std::vector<TomlMember> members;
    members.reserve(table->size());
    for (const auto& [key, value] : *table)
      members.push_back(
          {std::string(key.str()), key.source().begin.line, key.source().begin.column, copied(value)});
    // toml++ sorts by key, but complaints and generated names follow the file.
    std::stable_sort(members.begin(), members.end(), [](const TomlMember& a, const TomlMember& b) {
      return std::pair(a.line, a.column) < std::pair(b.line, b.column);
    });
    out.value = std::move(members);
  }
  return out;
}

}  // namespace

bool parse_toml(std::string_view text, const Place& file, TomlValue& tree, Complaints& complaints) {
  if (const std::uint32_t line = too_deep_at(text); line != 0) {
    complaints.add({file.file, line, 1}, "more than 64 levels of keys and brackets", "nest less deeply");
    return false;
  }
  try {
    tree = copied(toml::parse(text));
    return true;
  } catch (const toml::parse_error& error) {
    const auto& where = error.source().begin;
    complaints.add({file.file, where.line, where.column}, "not TOML: " + std::string(error.description()),
                   "see toml.io for the syntax");
    return false;
  }
}

}  // namespace weir::fabric
