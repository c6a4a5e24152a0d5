#include "kv/text/glob.hpp"

#include <cctype>
#include <utility>

namespace weir::kv {

namespace {

unsigned char fold(char c, Case letters) {
  const auto u = static_cast<unsigned char>(c);
  return letters == Case::ignore ? static_cast<unsigned char>(std::tolower(u)) : u;
}

// Matches one character against the class that starts at pattern[at] == '['; `at` moves to its last
// character. As in Redis an unterminated class ends with the pattern.
bool in_class(std::string_view pattern, std::size_t& at, char c, Case letters) {
  ++at;
  const bool negated = at < pattern.size() && pattern[at] == '^';
  if (negated) ++at;
  const unsigned char wanted = fold(c, letters);
  bool found = false;
  for (;; ++at) {
    if (at >= pattern.size()) {
      at = pattern.size() - 1;
      break;
    }
    if (pattern[at] == '\\' && at + 1 < pattern.size()) {
      ++at;
      if (fold(pattern[at], letters) == wanted) found = true;
    } else if (pattern[at] == ']') {
      break;
    } else if (at + 2 < pattern.size() && pattern[at + 1] == '-') {
      unsigned char low = fold(pattern[at], letters);
      unsigned char high = fold(pattern[at + 2], letters);
      if (low > high) std::swap(low, high);
      at += 2;
      if (wanted >= low && wanted <= high) found = true;
    } else if (fold(pattern[at], letters) == wanted) {
      found = true;
    }
  }
  return found != negated;
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text, Case letters) {
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star_pattern = none;  // where to resume after the last star
  std::size_t star_text = 0;
  for (;;) {
    if (p < pattern.size() && pattern[p] == '*') {
      while (p < pattern.size() && pattern[p] == '*') ++p;
      if (p == pattern.size()) return true;
      star_pattern = p;
      star_text = t;
      continue;
    }
    if (t == text.size()) return p == pattern.size();
    bool matches = false;
    std::size_t next = p + 1;
    if (p < pattern.size()) {
      if (pattern[p] == '?') {
        matches = true;
      } else if (pattern[p] == '[') {
        std::size_t at = p;
        matches = in_class(pattern, at, text[t], letters);
        next = at + 1;
      } else {
        std::size_t at = p;
        if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
        matches = fold(pattern[at], letters) == fold(text[t], letters);
        next = at + 1;
      }
    }
    if (matches) {
      p = next;
      ++t;
    } else if (star_pattern != none) {
      p = star_pattern;
      t = ++star_text;
    } else {
      return false;
    }
  }
}

}  // namespace weir::kv
