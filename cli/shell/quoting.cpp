#include "cli/shell/quoting.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>

namespace weir::shell {
namespace {

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const auto lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Reads a quoted part; `at` starts after the opening quote and ends after the closing one.
bool take_double_quoted(std::string_view line, std::size_t& at, std::string& word) {
  for (; at < line.size(); ++at) {
    if (line[at] == '"') {
      ++at;
      return at == line.size() || is_space(line[at]);
    }
    if (line[at] != '\\' || at + 1 == line.size()) {
      word += line[at];
      continue;
    }
    const char escaped = line[++at];
    if (escaped == 'x' && at + 2 < line.size() && hex_digit(line[at + 1]) >= 0 &&
        hex_digit(line[at + 2]) >= 0) {
      word += static_cast<char>(hex_digit(line[at + 1]) * 16 + hex_digit(line[at + 2]));
      at += 2;
      continue;
    }
    constexpr std::string_view names = "nrtba";
    constexpr std::string_view meant = "\n\r\t\b\a";
    const auto known = names.find(escaped);
    word += known == std::string_view::npos ? escaped : meant[known];
  }
  return false;
}

bool take_single_quoted(std::string_view line, std::size_t& at, std::string& word) {
  for (; at < line.size(); ++at) {
    if (line[at] == '\'') {
      ++at;
      return at == line.size() || is_space(line[at]);
    }
    if (line[at] == '\\' && at + 1 < line.size() && line[at + 1] == '\'') ++at;
    word += line[at];
  }
  return false;
}

struct Escapes {
  std::string_view special, names;  // after a backslash, names[i] stands for special[i]
  const char* code;                 // format for other bytes that need an escape
  bool ascii;                       // bytes beyond ASCII need one, too
};

std::string between_quotes(std::string_view text, const Escapes& escapes) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (const auto known = escapes.special.find(c); known != std::string_view::npos) {
      out += '\\';
      out += escapes.names[known];
    } else if (byte < 0x20 || (escapes.ascii && byte >= 0x7f)) {
      char code[8];
      std::snprintf(code, sizeof code, escapes.code, unsigned{byte});
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace

std::optional<std::vector<std::string>> split_words(std::string_view line) {
  std::vector<std::string> words;
  for (std::size_t at = 0;;) {
    while (at < line.size() && is_space(line[at])) ++at;
    if (at == line.size()) return words;
    std::string word;
    while (at < line.size() && !is_space(line[at])) {
      const char c = line[at++];
      if (c == '"') {
        if (!take_double_quoted(line, at, word)) return std::nullopt;
      } else if (c == '\'') {
        if (!take_single_quoted(line, at, word)) return std::nullopt;
      } else {
        word += c;
      }
    }
    words.push_back(std::move(word));
  }
}

std::string quoted(std::string_view text) {
  return between_quotes(
      text, {.special = "\n\r\t\a\b\\\"", .names = "nrtab\\\"", .code = "\\x%02x", .ascii = true});
}

std::string json_quoted(std::string_view text) {
  return between_quotes(
      text, {.special = "\n\f\r\t\b\\\"", .names = "nfrtb\\\"", .code = "\\u%04x", .ascii = false});
}

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace weir::shell
