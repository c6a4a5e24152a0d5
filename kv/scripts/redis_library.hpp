// The table `redis` that scripts call the server through.
#pragma once

#include <lua.hpp>

namespace weir::kv {

class Scripts;

// Leaves the table on the stack. `scripts` must outlive the interpreter.
void push_redis_library(lua_State* lua, Scripts& scripts);

// Gives an error its place in the script: {err = ..., source = ..., line = ...}. For lua_pcall.
int locate_error(lua_State* lua);

}  // namespace weir::kv
