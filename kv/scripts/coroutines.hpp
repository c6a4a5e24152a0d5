// coroutine.create, resume and wrap of Lua 5.1 (reference manual, 5.2), for interpreters with a budget.
//
// Lua's hook belongs to one coroutine, and each counts its own instructions. A script of many coroutines must
// not escape the clock by that, so the budget knows which one runs, and every switch costs steps.
#pragma once

#include <lua.hpp>

namespace weir::kv {

// Call with Lua's coroutine library open and not yet protected.
void replace_coroutine_functions(lua_State* lua);

}  // namespace weir::kv
