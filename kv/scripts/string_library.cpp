#include "kv/scripts/string_library.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "kv/scripts/budget.hpp"
#include "kv/scripts/lua_buffer.hpp"
#include "kv/scripts/lua_values.hpp"
#include "kv/scripts/pattern.hpp"
#include "kv/scripts/string_format.hpp"

namespace weir::kv {

namespace {

std::string_view check_text(lua_State* lua, int argument) {
  std::size_t size = 0;
  const char* text = luaL_checklstring(lua, argument, &size);
  return {text, size};
}

// The offset that the position at `argument` stands for, within the text; negative ones count from its end.
std::size_t offset_at(lua_State* lua, int argument, std::size_t size) {
  lua_Integer position = luaL_optinteger(lua, argument, 1);
  if (position < 0) position += static_cast<lua_Integer>(size) + 1;
  return std::min(static_cast<std::size_t>(std::max<lua_Integer>(position, 1)) - 1, size);
}

// Where `wanted` begins in `text`, from an offset on; npos: nowhere.
std::size_t find_plain(lua_State* lua, std::string_view text, std::string_view wanted, std::size_t from) {
  if (wanted.empty()) return from;
  Budget& budget = Budget::of(lua);
  constexpr std::size_t at_once = Budget::steps_between_looks;
  while (text.size() - from >= wanted.size()) {
    const std::size_t last_begin = text.size() - wanted.size();
    const std::size_t looked_through = std::min(last_begin - from + 1, at_once);
    const void* first = std::memchr(text.data() + from, wanted.front(), looked_through);
    if (first == nullptr) {
      budget.spend_bytes(lua, looked_through);
      from += looked_through;
      continue;
    }
    const auto at = static_cast<std::size_t>(static_cast<const char*>(first) - text.data());
    std::size_t same = 1;
    for (; same < wanted.size(); same += std::min(wanted.size() - same, at_once)) {
      const std::size_t compared = std::min(wanted.size() - same, at_once);
      budget.spend_bytes(lua, compared);
      if (std::memcmp(text.data() + at + same, wanted.data() + same, compared) != 0) break;
    }
    if (same == wanted.size()) return at;
    budget.spend_bytes(lua, at - from);
    from = at + 1;
  }
  return std::string_view::npos;
}

bool is_plain(std::string_view pattern) {
  // Only what is before a zero byte counts, as in Lua.
  return std::strpbrk(pattern.data(), "^$*+?.([%-") == nullptr;
}

int find_or_match(lua_State* lua, bool find) {
  const std::string_view text = check_text(lua, 1);
  const std::string_view pattern = check_text(lua, 2);
  const std::size_t from = offset_at(lua, 3, text.size());
  Budget::of(lua).spend_bytes(lua, pattern.size());
  if (find && (lua_toboolean(lua, 4) != 0 || is_plain(pattern))) {
    const std::size_t at = find_plain(lua, text, pattern, from);
    if (at == std::string_view::npos) return lua_pushnil(lua), 1;
    lua_pushinteger(lua, static_cast<lua_Integer>(at + 1));
    lua_pushinteger(lua, static_cast<lua_Integer>(at + pattern.size()));
    return 2;
  }
  const bool anchored = pattern.starts_with('^');
  Pattern attempt(lua, text, pattern.data() + (anchored ? 1 : 0));
  const char* const end = text.data() + text.size();
  for (const char* at = text.data() + from; at <= end; ++at) {
    if (const char* const to = attempt.match(at)) {
      if (!find) return attempt.push_captures(at, to);
      lua_pushinteger(lua, at - text.data() + 1);
      lua_pushinteger(lua, to - text.data());
      return 2 + attempt.push_captures(nullptr, nullptr);
    }
    if (anchored) break;
  }
  lua_pushnil(lua);
  return 1;
}

int find(lua_State* lua) { return find_or_match(lua, true); }
int match(lua_State* lua) { return find_or_match(lua, false); }

// The iterator of gmatch. Its upvalues: text, pattern, the offset where it goes on.
int next_match(lua_State* lua) {
  const std::string_view text = text_at(lua, lua_upvalueindex(1));
  Pattern attempt(lua, text, lua_tostring(lua, lua_upvalueindex(2)));
  const char* const end = text.data() + text.size();
  for (const char* at = text.data() + lua_tointeger(lua, lua_upvalueindex(3)); at <= end; ++at) {
    const char* const to = attempt.match(at);
    if (to == nullptr) continue;
    lua_pushinteger(lua, to - text.data() + (to == at ? 1 : 0));
    lua_replace(lua, lua_upvalueindex(3));
    return attempt.push_captures(at, to);
  }
  return 0;
}

int gmatch(lua_State* lua) {
  luaL_checkstring(lua, 1);
  luaL_checkstring(lua, 2);
  lua_settop(lua, 2);
  lua_pushinteger(lua, 0);
  lua_pushcclosure(lua, next_match, 3);
  return 1;
}

// Appends the replacement text, in which %1 to %9 are captures and %0 is the match.
void add_replacement_text(lua_State* lua, luaL_Buffer& out, const Pattern& found, const char* from,
                          const char* to) {
  const std::string_view with = text_at(lua, 3);
  for (std::size_t i = 0; i < with.size(); ++i) {
    Budget::of(lua).spend(lua, 1);
    if (with[i] != '%') {
      luaL_addchar(&out, with[i]);
      continue;
    }
    ++i;  // a last "%" stands before the zero byte that ends every string of Lua's
    const char after = with.data()[i];
    if (std::isdigit(static_cast<unsigned char>(after)) == 0) {
      luaL_addchar(&out, after);
    } else if (after == '0') {
      add_paid(lua, out, {from, static_cast<std::size_t>(to - from)});
    } else {
      found.push_capture(after - '1', from, to);
      luaL_addvalue(&out);
    }
  }
}

// Appends what gsub's third argument makes of a match.
void add_replacement(lua_State* lua, luaL_Buffer& out, const Pattern& found, const char* from,
                     const char* to) {
  switch (lua_type(lua, 3)) {
    case LUA_TFUNCTION:
      lua_pushvalue(lua, 3);
      lua_call(lua, found.push_captures(from, to), 1);
      break;
    case LUA_TTABLE:
      found.push_capture(0, from, to);
      lua_gettable(lua, 3);
      break;
    default:
      return add_replacement_text(lua, out, found, from, to);
  }
  if (lua_toboolean(lua, -1) == 0) {
    lua_pop(lua, 1);
    lua_pushlstring(lua, from, static_cast<std::size_t>(to - from));
  } else if (lua_isstring(lua, -1) == 0) {
    luaL_error(lua, "invalid replacement value (a %s)", luaL_typename(lua, -1));
  }
  luaL_addvalue(&out);
}

int gsub(lua_State* lua) {
  const std::string_view text = check_text(lua, 1);
  const char* pattern = luaL_checkstring(lua, 2);
  const int type = lua_type(lua, 3);
  const int most = luaL_optint(lua, 4, static_cast<int>(text.size() + 1));
  const bool anchored = *pattern == '^';
  luaL_argcheck(lua,
                type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION || type == LUA_TTABLE, 3,
                "string/function/table expected");
  luaL_Buffer out;
  luaL_buffinit(lua, &out);
  Pattern attempt(lua, text, pattern + (anchored ? 1 : 0));
  const char* at = text.data();
  const char* const end = at + text.size();
  int count = 0;
  while (count < most) {
    const char* const to = attempt.match(at);
    if (to != nullptr) {
      ++count;
      add_replacement(lua, out, attempt, at, to);
    }
    if (to != nullptr && to > at) {
      at = to;
    } else if (at < end) {
      luaL_addchar(&out, *at++);
    } else {
      break;
    }
    if (anchored) break;
  }
  add_paid(lua, out, {at, static_cast<std::size_t>(end - at)});
  luaL_pushresult(&out);
  lua_pushinteger(lua, count);
  return 2;
}

int rep(lua_State* lua) {
  const std::string_view text = check_text(lua, 1);
  const int count = luaL_checkint(lua, 2);
  luaL_Buffer out;
  luaL_buffinit(lua, &out);
  // Nothing, as often as one likes, is nothing.
  if (!text.empty()) {
    for (int i = 0; i < count; ++i) add_paid(lua, out, text);
  }
  luaL_pushresult(&out);
  return 1;
}

int reverse(lua_State* lua) {
  const std::string_view text = check_text(lua, 1);
  luaL_Buffer out;
  luaL_buffinit(lua, &out);
  add_in_pieces(lua, out, text.size(), [&](char* to, std::size_t from, std::size_t count) {
    const char* const end = text.data() + (text.size() - from);
    std::reverse_copy(end - count, end, to);
  });
  luaL_pushresult(&out);
  return 1;
}

int change_case(lua_State* lua, int (*change)(int)) {
  const std::string_view text = check_text(lua, 1);
  luaL_Buffer out;
  luaL_buffinit(lua, &out);
  add_in_pieces(lua, out, text.size(), [&](char* to, std::size_t from, std::size_t count) {
    std::ranges::transform(text.substr(from, count), to,
                           [change](unsigned char c) { return static_cast<char>(change(c)); });
  });
  luaL_pushresult(&out);
  return 1;
}

int lower(lua_State* lua) { return change_case(lua, std::tolower); }
int upper(lua_State* lua) { return change_case(lua, std::toupper); }

}  // namespace

void replace_string_functions(lua_State* lua) {
  constexpr luaL_Reg functions[] = {{"find", find},   {"match", match}, {"gmatch", gmatch},
                                    {"gsub", gsub},   {"rep", rep},     {"reverse", reverse},
                                    {"lower", lower}, {"upper", upper}, {"format", format_text}};
  lua_getglobal(lua, LUA_STRLIBNAME);
  for (const luaL_Reg& function : functions) {
    lua_pushcfunction(lua, function.func);
    lua_setfield(lua, -2, function.name);
  }
  lua_getfield(lua, -1, "gmatch");
  lua_setfield(lua, -2, "gfind");  // its old name
  lua_pop(lua, 1);
}

}  // namespace weir::kv
