// Lua 5.1's table functions (reference manual, 5.5) whose work grows with the table, as functions that pay
// for each step (budget.hpp). They behave like the originals, errors and the order of equal elements
// included.
#pragma once

#include <lua.hpp>

namespace weir::kv {

// Call with Lua's table library open and not yet protected.
void replace_table_functions(lua_State* lua);

}  // namespace weir::kv
