#include "kv/scripts/redis_library.hpp"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "kv/scripts/budget.hpp"
#include "kv/scripts/lua_values.hpp"
#include "kv/scripts/sandbox.hpp"
#include "kv/scripts/script_cache.hpp"

namespace weir::kv {

namespace {

// Upvalues of each function: the host, and the global by which the script reached the function's table.
constexpr int library_name = lua_upvalueindex(2);

RedisLibraryHost& host_of(lua_State* lua) {
  return *static_cast<RedisLibraryHost*>(lua_touserdata(lua, lua_upvalueindex(1)));
}

int raise(lua_State* lua, std::string_view text) {
  push_error(lua, text);
  return lua_error(lua);
}

// redis.error_reply and redis.status_reply: {err = text}, {ok = text}
int error_reply(lua_State* lua) {
  if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
    push_error(lua, "ERR wrong number or type of arguments");
    return 1;
  }
  std::size_t size = 0;
  const char* bytes = lua_tolstring(lua, 1, &size);
  std::string text(bytes, size);
  if (text.starts_with('-')) {
    text.erase(0, 1);
  } else if (text.find(' ') == std::string::npos) {
    text.insert(0, "ERR ");
  }
  push_error(lua, text);
  return 1;
}

int status_reply(lua_State* lua) {
  if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
    push_error(lua, "ERR wrong number or type of arguments");
    return 1;
  }
  lua_newtable(lua);
  lua_pushvalue(lua, 1);
  lua_setfield(lua, -2, "ok");
  return 1;
}

int sha1hex(lua_State* lua) {
  if (lua_gettop(lua) != 1) return raise(lua, "ERR wrong number of arguments");
  std::string_view rest = text_at(lua, 1);
  Sha1 sha1;
  while (!rest.empty()) {
    constexpr std::size_t at_once = 64 * 1024;
    const std::string_view piece = rest.substr(0, at_once);
    Budget::of(lua).spend_bytes(lua, piece.size());
    sha1.add(piece);
    rest.remove_prefix(piece.size());
  }
  const std::string hex = sha1.hex();
  lua_pushlstring(lua, hex.data(), hex.size());
  return 1;
}

int log(lua_State* lua) {
  const int count = lua_gettop(lua);
  if (count < 2) return raise_named(lua, "ERR %s.log() requires two arguments or more.");
  if (lua_isnumber(lua, 1) == 0) return raise(lua, "ERR First argument must be a number (log level).");
  const auto level = static_cast<int>(lua_tonumber(lua, 1));
  if (level < 0 || level > 3) return raise(lua, "ERR Invalid debug level.");
  constexpr std::size_t longest_line = 1024;  // as in Redis
  std::string line;
  for (int i = 2; i <= count && line.size() < longest_line; ++i) {
    std::size_t size = 0;
    const char* text = lua_tolstring(lua, i, &size);
    if (text == nullptr) continue;
    if (!line.empty()) line += ' ';
    line.append(text, std::min(size, longest_line - std::min(longest_line, line.size())));
  }
  host_of(lua).log(static_cast<LogLevel>(level), line);
  return 0;
}

int setresp(lua_State* lua) {
  if (lua_gettop(lua) != 1) return raise_named(lua, "ERR %s.setresp() requires one argument.");
  const auto version = static_cast<int>(lua_tonumber(lua, 1));
  if (!host_of(lua).set_protocol(version)) return raise(lua, "ERR RESP version must be 2 or 3.");
  return 0;
}

int set_repl(lua_State* lua) {
  if (lua_gettop(lua) != 1) return raise_named(lua, "ERR %s.set_repl() requires one argument.");
  const auto flags = static_cast<int>(lua_tonumber(lua, 1));
  if ((flags & ~3) != 0)
    return raise(lua, "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.");
  return 0;
}

int answer_true(lua_State* lua) {
  lua_pushboolean(lua, 1);
  return 1;
}
int answer_false(lua_State* lua) {
  lua_pushboolean(lua, 0);
  return 1;
}
int nothing(lua_State*) { return 0; }

constexpr luaL_Reg functions[] = {
    {"call", [](lua_State* lua) { return host_of(lua).call(lua, true); }},
    {"pcall", [](lua_State* lua) { return host_of(lua).call(lua, false); }},
    {"error_reply", error_reply},
    {"status_reply", status_reply},
    {"sha1hex", sha1hex},
    {"log", log},
    {"setresp", setresp},
    {"acl_check_cmd", [](lua_State* lua) { return host_of(lua).check_permission(lua); }},
    {"set_repl", set_repl},
    {"replicate_commands", answer_true},
    {"breakpoint", answer_false},
    {"debug", nothing},
};
constexpr luaL_Reg loading_functions[] = {
    {"register_function", [](lua_State* lua) { return host_of(lua).register_function(lua); }},
    {"log", log},
};

struct Number {
  const char* name;
  int value;
};
constexpr Number numbers[] = {{"LOG_DEBUG", 0},  {"LOG_VERBOSE", 1},
                              {"LOG_NOTICE", 2}, {"LOG_WARNING", 3},
                              {"REPL_NONE", 0},  {"REPL_AOF", 1},
                              {"REPL_SLAVE", 2}, {"REPL_REPLICA", 2},
                              {"REPL_ALL", 3},   {"REDIS_VERSION_NUM", 0x0007000f}};

// `global` is the name by which scripts reach the table.
template <class Wanted>
void push_table(lua_State* lua, RedisLibraryHost& host, std::span<const luaL_Reg> its_functions,
                Wanted wanted, const char* global) {
  lua_newtable(lua);
  for (const luaL_Reg& function : its_functions) {
    lua_pushlightuserdata(lua, &host);
    lua_pushstring(lua, global);
    lua_pushcclosure(lua, function.func, 2);
    lua_setfield(lua, -2, function.name);
  }
  for (const Number& number : numbers) {
    if (!wanted(number.name)) continue;
    lua_pushnumber(lua, number.value);
    lua_setfield(lua, -2, number.name);
  }
  constexpr const char* texts[][2] = {
      {"REDIS_VERSION", WEIR_REDIS_VERSION}, {"SERVER_NAME", "weir"}, {"SERVER_VERSION", WEIR_VERSION}};
  for (const auto& [name, text] : texts) {
    lua_pushstring(lua, text);
    lua_setfield(lua, -2, name);
  }
}

}  // namespace

int raise_named(lua_State* lua, const char* text) {
  lua_newtable(lua);
  lua_pushfstring(lua, text, lua_tostring(lua, library_name));
  lua_setfield(lua, -2, "err");
  return lua_error(lua);
}

bool called_by_redis_name(lua_State* lua) { return text_at(lua, library_name) == "redis"; }

void push_redis_library(lua_State* lua, RedisLibraryHost& host, const char* name) {
  push_table(lua, host, functions, [](std::string_view) { return true; }, name);
}

void push_loading_globals(lua_State* lua, RedisLibraryHost& host) {
  lua_newtable(lua);
  for (const char* name : {"redis", "server"}) {
    push_table(
        lua, host, loading_functions, [](std::string_view number) { return !number.starts_with("REPL_"); },
        name);
    protect_strictly(lua);
    lua_setfield(lua, -2, name);
  }
  protect_strictly(lua);
}

int locate_error(lua_State* lua) {
  if (!lua_istable(lua, 1)) {
    lua_newtable(lua);
    lua_pushliteral(lua, "ERR ");
    const char* text = lua_tostring(lua, 1);
    lua_pushstring(lua, text != nullptr ? text : luaL_typename(lua, 1));
    lua_concat(lua, 2);
    lua_setfield(lua, -2, "err");
    lua_replace(lua, 1);
  }
  lua_settop(lua, 1);
  lua_Debug at{};
  for (int level = 1; lua_getstack(lua, level, &at) != 0; ++level) {
    lua_getinfo(lua, "Sl", &at);
    if (std::string_view(at.what) == "C") continue;
    lua_pushstring(lua, at.source);
    lua_setfield(lua, 1, "source");
    lua_pushinteger(lua, at.currentline);
    lua_setfield(lua, 1, "line");
    break;
  }
  return 1;
}

}  // namespace weir::kv
