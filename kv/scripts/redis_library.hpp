// The table `redis`, through which scripts call the server.
#pragma once

#include <lua.hpp>

namespace weir::kv {

class Scripts;

// Pushes the table. `scripts` must outlive the interpreter.
void push_redis_library(lua_State* lua, Scripts& scripts);
// Pushes what the code of a library sees as its globals while it is loaded: a table `redis` with
// register_function, log and the version, and nothing else, as in Redis 7.0. Call after close_sandbox().
void push_loading_globals(lua_State* lua, Scripts& scripts);

// Adds the place in the script to an error: {err = ..., source = ..., line = ...}. For lua_pcall.
int locate_error(lua_State* lua);

}  // namespace weir::kv
