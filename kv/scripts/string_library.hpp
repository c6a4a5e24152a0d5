// Lua 5.1's string functions (reference manual, 5.4) whose work grows with their arguments, as functions that
// pay for each step (budget.hpp) and cannot overflow the stack (pattern.hpp). They behave like the originals,
// errors included.
#pragma once

#include <lua.hpp>

namespace weir::kv {

// Call with Lua's string library open and not yet protected.
void replace_string_functions(lua_State* lua);

}  // namespace weir::kv
