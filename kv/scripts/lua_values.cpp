#include "kv/scripts/lua_values.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "kv/scripts/budget.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

std::string_view take_line(std::string_view& replies) {
  const std::size_t end = replies.find('\r');
  const std::string_view line = replies.substr(0, end);
  replies.remove_prefix(end + 2);
  return line;
}

std::string_view take_bytes(std::string_view& replies, std::int64_t size) {
  const std::string_view bytes = replies.substr(0, static_cast<std::size_t>(size));
  replies.remove_prefix(static_cast<std::size_t>(size) + 2);
  return bytes;
}

void push_text(lua_State* lua, std::string_view text) { lua_pushlstring(lua, text.data(), text.size()); }

void push_field(lua_State* lua, const char* name, std::string_view text) {
  lua_newtable(lua);
  push_text(lua, text);
  lua_setfield(lua, -2, name);
}

void push_elements(lua_State* lua, std::string_view& replies, std::int64_t count) {
  lua_newtable(lua);
  for (std::int64_t i = 1; i <= count; ++i) {
    push_reply(lua, replies);
    lua_rawseti(lua, -2, static_cast<int>(i));
  }
}

// {map = {key = value, ...}}, or {set = {member = true, ...}}
void push_pairs(lua_State* lua, std::string_view& replies, std::int64_t count, const char* name,
                bool is_set) {
  lua_newtable(lua);
  lua_newtable(lua);
  for (std::int64_t i = 0; i < count; ++i) {
    push_reply(lua, replies);
    is_set ? lua_pushboolean(lua, 1) : push_reply(lua, replies);
    lua_rawset(lua, -3);
  }
  lua_setfield(lua, -2, name);
}

void push_verbatim(lua_State* lua, std::string_view text) {
  lua_newtable(lua);
  lua_newtable(lua);
  push_text(lua, text.substr(4));
  lua_setfield(lua, -2, "string");
  push_text(lua, text.substr(0, 3));
  lua_setfield(lua, -2, "format");
  lua_setfield(lua, -2, "verbatim_string");
}

}  // namespace

std::string_view text_at(lua_State* lua, int index) {
  std::size_t size = 0;
  const char* text = lua_tolstring(lua, index, &size);
  return {text, size};
}

void push_error(lua_State* lua, std::string_view text) { push_field(lua, "err", text); }

void push_reply(lua_State* lua, std::string_view& replies) {
  constexpr std::size_t steps = 5;
  luaL_checkstack(lua, 8, "reached lua stack limit");
  Budget::of(lua).spend(lua, steps);
  const char kind = replies[0];
  const std::string_view line = take_line(replies).substr(1);
  const auto count = [line] {
    std::int64_t value = 0;
    std::from_chars(line.data(), line.data() + line.size(), value);
    return value;
  };
  switch (kind) {
    case ':':
      return lua_pushnumber(lua, static_cast<lua_Number>(count()));
    case '$':
      return count() < 0 ? lua_pushboolean(lua, 0) : push_text(lua, take_bytes(replies, count()));
    case '+':
      return push_field(lua, "ok", line);
    case '-':
      return push_error(lua, line);
    case '*':
    case '>':
      return count() < 0 ? lua_pushboolean(lua, 0) : push_elements(lua, replies, count());
    case '%':
      return push_pairs(lua, replies, count(), "map", false);
    case '~':
      return push_pairs(lua, replies, count(), "set", true);
    case '#':
      return lua_pushboolean(lua, line == "t");
    case ',': {
      lua_newtable(lua);
      lua_pushnumber(lua, parse_double(line).value_or(std::nan("")));
      return lua_setfield(lua, -2, "double");
    }
    case '(':
      return push_field(lua, "big_number", line);
    case '|':  // attributes of the reply that follows, which scripts do not see
      push_pairs(lua, replies, count(), "map", false);
      lua_pop(lua, 1);
      return push_reply(lua, replies);
    case '=':
      return push_verbatim(lua, take_bytes(replies, count()));
    default:  // '_'
      return lua_pushnil(lua);
  }
}

namespace {

// Pushes the field if it has that type.
bool push_if(lua_State* lua, const char* name, int type) {
  lua_pushstring(lua, name);
  lua_rawget(lua, -2);
  if (lua_type(lua, -1) == type) return true;
  lua_pop(lua, 1);
  return false;
}

// Replaces line ends, which a one-line reply cannot hold.
std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (c == '\r' || c == '\n') c = ' ';
  }
  return line;
}

std::size_t count_pairs(lua_State* lua) {
  std::size_t count = 0;
  for (lua_pushnil(lua); lua_next(lua, -2) != 0; lua_pop(lua, 1)) {
    Budget::of(lua).spend(lua, 1);
    ++count;
  }
  return count;
}

// Writes the table on top of the stack as a map or set.
void write_pairs(lua_State* lua, const ResultTarget& to, bool is_set) {
  const std::size_t count = count_pairs(lua);
  is_set ? to.reply.set(count) : to.reply.map(count);
  lua_pushnil(lua);
  while (lua_next(lua, -2) != 0) {
    if (is_set) lua_pop(lua, 1);
    lua_pushvalue(lua, is_set ? -1 : -2);
    write_value(lua, to);
    if (!is_set) write_value(lua, to);
  }
}

void write_verbatim(lua_State* lua, Reply& reply) {
  if (push_if(lua, "format", LUA_TSTRING)) {
    std::string format(text_at(lua, -1));
    format.resize(3, ' ');
    lua_pop(lua, 1);
    if (push_if(lua, "string", LUA_TSTRING)) {
      reply.verbatim(format, text_at(lua, -1));
      return lua_pop(lua, 1);
    }
  }
  reply.null();
}

void write_elements(lua_State* lua, const ResultTarget& to) {
  int count = 0;
  for (;; ++count) {
    Budget::of(lua).spend(lua, 1);
    lua_rawgeti(lua, -1, count + 1);
    const bool last = lua_isnil(lua, -1);
    lua_pop(lua, 1);
    if (last) break;
  }
  to.reply.array(static_cast<std::size_t>(count));
  for (int i = 1; i <= count; ++i) {
    lua_rawgeti(lua, -1, i);
    write_value(lua, to);
  }
}

void write_table(lua_State* lua, const ResultTarget& to) {
  Reply& reply = to.reply;
  if (push_if(lua, "err", LUA_TSTRING)) {
    reply.error(text_at(lua, -1));
  } else if (push_if(lua, "ok", LUA_TSTRING)) {
    reply.simple(one_line(text_at(lua, -1)));
  } else if (push_if(lua, "double", LUA_TNUMBER)) {
    reply.real(lua_tonumber(lua, -1));
  } else if (push_if(lua, "map", LUA_TTABLE)) {
    write_pairs(lua, to, false);
  } else if (push_if(lua, "set", LUA_TTABLE)) {
    write_pairs(lua, to, true);
  } else if (push_if(lua, "big_number", LUA_TSTRING)) {
    const std::string digits = one_line(text_at(lua, -1));
    reply.resp3() ? reply.raw('(' + digits + "\r\n") : reply.bulk(digits);
  } else if (push_if(lua, "verbatim_string", LUA_TTABLE)) {
    write_verbatim(lua, reply);
  } else {
    return write_elements(lua, to);
  }
  lua_pop(lua, 1);
}

void write_boolean(lua_State* lua, Reply& reply, bool booleans) {
  const bool value = lua_toboolean(lua, -1) != 0;
  if (booleans) return reply.boolean(value);
  value ? reply.integer(1) : reply.null();
}

// Converts like a C cast; out of range no result is right, but this one is defined.
std::int64_t cut(lua_Number value) {
  constexpr lua_Number limit = 9223372036854775808.0;
  if (!(value > -limit)) return std::numeric_limits<std::int64_t>::min();
  if (!(value < limit)) return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(value);
}

}  // namespace

void write_scalar(lua_State* lua, const ResultTarget& to) {
  switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
      to.reply.bulk(text_at(lua, -1));
      break;
    case LUA_TBOOLEAN:
      write_boolean(lua, to.reply, to.booleans);
      break;
    case LUA_TNUMBER:
      to.reply.integer(cut(lua_tonumber(lua, -1)));
      break;
    default:
      to.reply.null();
  }
  lua_pop(lua, 1);
}

void write_value(lua_State* lua, const ResultTarget& to) {
  constexpr std::size_t steps = 5;
  Budget& budget = Budget::of(lua);
  budget.spend(lua, steps);
  // Tables may contain each other, so a small script can have a result without end.
  if (to.queue.size() > budget.memory_limit()) luaL_error(lua, "the result is larger than lua-memory-limit");
  if (lua_checkstack(lua, 6) == 0) {
    to.reply.error("ERR reached lua stack limit");
    return lua_pop(lua, 1);
  }
  if (lua_type(lua, -1) != LUA_TTABLE) return write_scalar(lua, to);
  write_table(lua, to);
  lua_pop(lua, 1);
}

}  // namespace weir::kv
