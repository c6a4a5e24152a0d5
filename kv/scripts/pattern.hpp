// Lua 5.1's patterns (reference manual, 5.4.1): one attempt to match a subject at one place.
//
// Behaves as Lua's own matcher, errors included, with two limits that it lacks: at most max_depth attempts
// are nested in each other, as in Lua 5.2, and every step is paid for (budget.hpp). A pattern ends at its
// first zero byte, as in Lua 5.1.
//
// Threading: the server's one thread. Errors are Lua errors.
#pragma once

#include <array>
#include <cstddef>
#include <lua.hpp>
#include <string_view>

#include "kv/scripts/budget.hpp"

namespace weir::kv {

class Pattern {
 public:
  static constexpr int max_captures = 32;
  static constexpr int max_depth = 200;

  // Both texts stay on Lua's stack while the pattern is used, and end with a zero byte as Lua's strings do.
  Pattern(lua_State* lua, std::string_view subject, const char* pattern)
      : lua_(lua),
        budget_(Budget::of(lua)),
        begin_(subject.data()),
        end_(subject.data() + subject.size()),
        pattern_(pattern) {}

  // Returns the end of the match that begins at `at`; null: there is none.
  const char* match(const char* at);
  // Pushes what match() captured; without captures the whole match, if `from` is not null. Returns how many.
  int push_captures(const char* from, const char* to) const;
  // Pushes the capture of that number, from 0; without captures, number 0 is the whole match.
  void push_capture(int number, const char* from, const char* to) const;

 private:
  // Instead of a length.
  static constexpr std::ptrdiff_t unfinished = -1;
  static constexpr std::ptrdiff_t position = -2;
  struct Capture {
    const char* begin;
    std::ptrdiff_t length;
  };

  const char* run(const char* s, const char* p);
  const char* run_deeper(const char* s, const char* p);
  const char* open(const char* s, const char* p, std::ptrdiff_t what);
  const char* close(const char* s, const char* p);
  const char* longest_first(const char* s, const char* p, const char* after);
  const char* shortest_first(const char* s, const char* p, const char* after);
  const char* balanced(const char* s, const char* p);
  const char* captured_again(const char* s, char digit);
  bool at_frontier(const char* s, const char* set, const char* after);
  const char* item_end(const char* p);
  bool matches(const char* s, const char* p, const char* after);
  bool in_set(unsigned char c, const char* set, const char* last);

  lua_State* const lua_;
  Budget& budget_;
  const char* const begin_;
  const char* const end_;
  const char* const pattern_;
  int level_ = 0;
  int depth_ = 0;
  std::array<Capture, max_captures> captures_;
};

}  // namespace weir::kv
