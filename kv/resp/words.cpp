#include "kv/resp/words.hpp"

namespace weir::kv {

namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The character for an escape in double quotes; `at` is on the backslash and moves to
// the end of the escape.
char unescape(std::string_view line, std::size_t& at) {
  if (at + 3 < line.size() && line[at + 1] == 'x' && hex_digit(line[at + 2]) >= 0 &&
      hex_digit(line[at + 3]) >= 0) {
    const int value = hex_digit(line[at + 2]) * 16 + hex_digit(line[at + 3]);
    at += 3;
    return static_cast<char>(value);
  }
  ++at;
  switch (line[at]) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return line[at];
  }
}

// Reads a quoted part after its opening quote; false: it is not properly closed.
bool take_quoted(std::string_view line, std::size_t& at, char quote, std::string& word) {
  for (; at < line.size(); ++at) {
    if (line[at] == quote) {
      ++at;
      return at == line.size() || is_space(line[at]);
    }
    if (line[at] == '\\' && at + 1 < line.size()) {
      if (quote == '"') {
        word += unescape(line, at);
        continue;
      }
      if (line[at + 1] == '\'') ++at;
    }
    word += line[at];
  }
  return false;
}

}  // namespace

std::optional<std::vector<std::string>> split_words(std::string_view line) {
  if (const auto nul = line.find('\0'); nul != std::string_view::npos) line = line.substr(0, nul);
  std::vector<std::string> words;
  std::size_t at = 0;
  for (;;) {
    while (at < line.size() && is_space(line[at])) ++at;
    if (at == line.size()) return words;
    std::string& word = words.emplace_back();
    while (at < line.size() && !is_space(line[at])) {
      if (line[at] == '"' || line[at] == '\'') {
        const char quote = line[at++];
        if (!take_quoted(line, at, quote, word)) return std::nullopt;
        break;
      }
      word += line[at++];
    }
  }
}

std::string quoted(std::string_view word) {
  constexpr std::string_view escaped = "\n\r\t\a\b";
  constexpr std::string_view letters = "nrtab";
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "\"";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text.append(1, '\\').append(1, c);
    } else if (const std::size_t at = escaped.find(c); at != std::string_view::npos) {
      text.append(1, '\\').append(1, letters[at]);
    } else if (byte >= 0x20 && byte < 0x7f) {
      text += c;
    } else {
      text.append("\\x").append(1, digits[byte >> 4]).append(1, digits[byte & 15]);
    }
  }
  return text += '"';
}

}  // namespace weir::kv
