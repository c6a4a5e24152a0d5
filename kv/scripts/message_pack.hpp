// The library cmsgpack of Redis scripts: pack, unpack, unpack_one, unpack_limit.
//
// The bytes come from clients: invalid MessagePack is a Lua error.
#pragma once

#include <lua.hpp>

namespace weir::kv {

// Pushes the library's table.
int open_message_pack(lua_State* lua);

}  // namespace weir::kv
