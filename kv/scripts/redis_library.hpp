// The table `redis`, through which scripts call the server; `server` is Valkey's name for it.
#pragma once

#include <lua.hpp>
#include <string_view>

#include "kv/core/log_line.hpp"

namespace weir::kv {

// What the functions of the table ask for. Each that takes a Lua state is the body of one function.
class RedisLibraryHost {
 public:
  // redis.call, redis.pcall. `raise`: an error ends the script.
  virtual int call(lua_State* lua, bool raise) = 0;
  virtual int check_permission(lua_State* lua) = 0;  // redis.acl_check_cmd
  virtual int register_function(lua_State* lua) = 0;
  // False: there is no such protocol.
  virtual bool set_protocol(int version) = 0;
  virtual void log(LogLevel level, std::string_view line) = 0;

 protected:
  ~RedisLibraryHost() = default;
};

// Pushes the table, for the global `name`: "redis" or "server". `host` must outlive the interpreter.
void push_redis_library(lua_State* lua, RedisLibraryHost& host, const char* name);
// Pushes what the code of a library sees as its globals while it is loaded: the tables `redis` and
// `server` with register_function, log and the version, and nothing else, as in Redis 7.0. Call after
// close_sandbox().
void push_loading_globals(lua_State* lua, RedisLibraryHost& host);

// Within a function of the table: raises `text`, in which %s stands for the name by which the script has
// called it, "redis" or "server".
int raise_named(lua_State* lua, const char* text);
// Within a function of the table: whether the script has called it as redis.NAME.
bool called_by_redis_name(lua_State* lua);

// Adds the place in the script to an error: {err = ..., source = ..., line = ...}. For lua_pcall.
int locate_error(lua_State* lua);

}  // namespace weir::kv
