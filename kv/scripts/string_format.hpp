// string.format of Lua 5.1 (reference manual, 5.4), which pays for each step (budget.hpp).
#pragma once

#include <lua.hpp>

namespace weir::kv {

int format_text(lua_State* lua);

}  // namespace weir::kv
