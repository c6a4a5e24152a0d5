// table.sort of Lua 5.1 (reference manual, 5.5), which pays for each step (budget.hpp).
//
// A quicksort that takes the median of three as its pivot. Scripts see in which order it leaves equal
// elements, and what it does with an order that is none, so both are those of Lua 5.1.
#pragma once

#include <lua.hpp>

namespace weir::kv {

int sort_table(lua_State* lua);

}  // namespace weir::kv
