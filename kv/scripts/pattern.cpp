#include "kv/scripts/pattern.hpp"

#include <cctype>
#include <cstring>

namespace weir::kv {

namespace {

constexpr char escape = '%';

unsigned char byte(char c) { return static_cast<unsigned char>(c); }

// %a, %d, ...; the capital letter is the complement, and any other character stands for itself.
bool in_class(unsigned char c, unsigned char letter) {
  bool belongs = false;
  switch (std::tolower(letter)) {
    case 'a':
      belongs = std::isalpha(c) != 0;
      break;
    case 'c':
      belongs = std::iscntrl(c) != 0;
      break;
    case 'd':
      belongs = std::isdigit(c) != 0;
      break;
    case 'l':
      belongs = std::islower(c) != 0;
      break;
    case 'p':
      belongs = std::ispunct(c) != 0;
      break;
    case 's':
      belongs = std::isspace(c) != 0;
      break;
    case 'u':
      belongs = std::isupper(c) != 0;
      break;
    case 'w':
      belongs = std::isalnum(c) != 0;
      break;
    case 'x':
      belongs = std::isxdigit(c) != 0;
      break;
    case 'z':
      belongs = c == 0;
      break;
    default:
      return letter == c;
  }
  return belongs == (std::islower(letter) != 0);
}

}  // namespace

const char* Pattern::match(const char* at) {
  level_ = 0;
  depth_ = 0;
  return run_deeper(at, pattern_);
}

const char* Pattern::run_deeper(const char* s, const char* p) {
  if (depth_ == max_depth) luaL_error(lua_, "pattern too complex");
  ++depth_;
  const char* const end = run(s, p);
  --depth_;
  return end;
}

// Matches the rest of the pattern from `p`. What needs another attempt if the rest fails is nested; all else
// goes around the loop.
const char* Pattern::run(const char* s, const char* p) {
  for (;;) {
    budget_.spend(lua_, 1);
    switch (*p) {
      case '\0':
        return s;
      case '(':
        return p[1] == ')' ? open(s, p + 2, position) : open(s, p + 1, unfinished);
      case ')':
        return close(s, p + 1);
      case '$':
        if (p[1] == '\0') return s == end_ ? s : nullptr;
        break;
      case escape:
        if (p[1] == 'b') {
          if ((s = balanced(s, p + 2)) == nullptr) return nullptr;
          p += 4;
          continue;
        }
        if (p[1] == 'f') {
          p += 2;
          if (*p != '[') luaL_error(lua_, "missing '[' after '%%f' in pattern");
          const char* const after = item_end(p);
          if (!at_frontier(s, p, after)) return nullptr;
          p = after;
          continue;
        }
        if (std::isdigit(byte(p[1])) != 0) {
          if ((s = captured_again(s, p[1])) == nullptr) return nullptr;
          p += 2;
          continue;
        }
        break;
      default:
        break;
    }
    const char* const after = item_end(p);
    switch (*after) {
      case '*':
        return longest_first(s, p, after);
      case '+':
        return matches(s, p, after) ? longest_first(s + 1, p, after) : nullptr;
      case '-':
        return shortest_first(s, p, after);
      case '?':
        if (matches(s, p, after)) {
          if (const char* const end = run_deeper(s + 1, after + 1)) return end;
        }
        p = after + 1;
        continue;
      default:
        if (!matches(s, p, after)) return nullptr;
        ++s;
        p = after;
    }
  }
}

const char* Pattern::open(const char* s, const char* p, std::ptrdiff_t what) {
  if (level_ >= max_captures) luaL_error(lua_, "too many captures");
  captures_[static_cast<std::size_t>(level_)] = {s, what};
  ++level_;
  const char* const end = run_deeper(s, p);
  if (end == nullptr) --level_;
  return end;
}

const char* Pattern::close(const char* s, const char* p) {
  int last = level_ - 1;
  while (last >= 0 && captures_[static_cast<std::size_t>(last)].length != unfinished) --last;
  if (last < 0) luaL_error(lua_, "invalid pattern capture");
  Capture& capture = captures_[static_cast<std::size_t>(last)];
  capture.length = s - capture.begin;
  const char* const end = run_deeper(s, p);
  if (end == nullptr) capture.length = unfinished;
  return end;
}

const char* Pattern::longest_first(const char* s, const char* p, const char* after) {
  std::ptrdiff_t count = 0;
  while (matches(s + count, p, after)) ++count;
  for (; count >= 0; --count) {
    if (const char* const end = run_deeper(s + count, after + 1)) return end;
  }
  return nullptr;
}

const char* Pattern::shortest_first(const char* s, const char* p, const char* after) {
  for (;; ++s) {
    if (const char* const end = run_deeper(s, after + 1)) return end;
    if (!matches(s, p, after)) return nullptr;
  }
}

// %bxy: from an x to the y that balances it.
const char* Pattern::balanced(const char* s, const char* p) {
  if (p[0] == '\0' || p[1] == '\0') luaL_error(lua_, "unbalanced pattern");
  if (s == end_ || *s != p[0]) return nullptr;
  std::size_t open = 1;
  for (++s; s < end_; ++s) {
    budget_.spend(lua_, 1);
    if (*s == p[1]) {
      if (--open == 0) return s + 1;
    } else if (*s == p[0]) {
      ++open;
    }
  }
  return nullptr;
}

// %1 to %9: what was captured already.
const char* Pattern::captured_again(const char* s, char digit) {
  const int number = digit - '1';
  if (number < 0 || number >= level_ || captures_[static_cast<std::size_t>(number)].length == unfinished)
    luaL_error(lua_, "invalid capture index");
  const auto [begin, length] = captures_[static_cast<std::size_t>(number)];
  if (length < 0 || end_ - s < length) return nullptr;  // a position equals nothing
  budget_.spend_bytes(lua_, static_cast<std::size_t>(length));
  return std::memcmp(begin, s, static_cast<std::size_t>(length)) == 0 ? s + length : nullptr;
}

// %f[set]: between a character outside the set and one within; a zero byte is on either side of the subject.
bool Pattern::at_frontier(const char* s, const char* set, const char* after) {
  const unsigned char before = s == begin_ ? 0 : byte(s[-1]);
  return !in_set(before, set, after - 1) && in_set(byte(*s), set, after - 1);
}

// The end of the single-character item at `p`.
const char* Pattern::item_end(const char* p) {
  const char first = *p++;
  if (first == escape) {
    if (*p == '\0') luaL_error(lua_, "malformed pattern (ends with '%%')");
    return p + 1;
  }
  if (first != '[') return p;
  const char* const begin = p;
  if (*p == '^') ++p;
  do {
    if (*p == '\0') luaL_error(lua_, "malformed pattern (missing ']')");
    if (*p++ == escape && *p != '\0') ++p;
  } while (*p != ']');
  budget_.spend_bytes(lua_, static_cast<std::size_t>(p - begin));
  return p + 1;
}

// Whether the item at `p` matches the character at `s`, if there is one.
bool Pattern::matches(const char* s, const char* p, const char* after) {
  if (s >= end_) return false;
  budget_.spend(lua_, 1);
  switch (*p) {
    case '.':
      return true;
    case escape:
      return in_class(byte(*s), byte(p[1]));
    case '[':
      return in_set(byte(*s), p, after - 1);
    default:
      return *p == *s;
  }
}

// `last` is the set's "]".
bool Pattern::in_set(unsigned char c, const char* set, const char* last) {
  budget_.spend(lua_, 1 + static_cast<std::size_t>(last - set) / 8);
  const bool wanted = set[1] != '^';
  if (!wanted) ++set;
  while (++set < last) {
    if (*set == escape) {
      ++set;
      if (in_class(c, byte(*set))) return wanted;
    } else if (set[1] == '-' && set + 2 < last) {
      set += 2;
      if (byte(set[-2]) <= c && c <= byte(*set)) return wanted;
    } else if (byte(*set) == c) {
      return wanted;
    }
  }
  return !wanted;
}

int Pattern::push_captures(const char* from, const char* to) const {
  const int count = level_ == 0 && from != nullptr ? 1 : level_;
  luaL_checkstack(lua_, count, "too many captures");
  for (int i = 0; i < count; ++i) push_capture(i, from, to);
  return count;
}

void Pattern::push_capture(int number, const char* from, const char* to) const {
  if (number >= level_) {
    if (number != 0) luaL_error(lua_, "invalid capture index");
    return lua_pushlstring(lua_, from, static_cast<std::size_t>(to - from));
  }
  const auto [begin, length] = captures_[static_cast<std::size_t>(number)];
  if (length == unfinished) luaL_error(lua_, "unfinished capture");
  if (length == position) return lua_pushinteger(lua_, begin - begin_ + 1);
  budget_.spend_bytes(lua_, static_cast<std::size_t>(length));
  lua_pushlstring(lua_, begin, static_cast<std::size_t>(length));
}

}  // namespace weir::kv
