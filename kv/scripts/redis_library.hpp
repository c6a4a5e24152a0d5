// The table `redis`, through which scripts call the server.
#pragma once

#include <lua.hpp>

namespace weir::kv {

class Scripts;

// Pushes the table. `scripts` must outlive the interpreter.
void push_redis_library(lua_State* lua, Scripts& scripts);

// Adds the place in the script to an error: {err = ..., source = ..., line = ...}. For lua_pcall.
int locate_error(lua_State* lua);

}  // namespace weir::kv
