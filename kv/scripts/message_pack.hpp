// cmsgpack, as scripts know it from Redis: pack, unpack, unpack_one, unpack_limit.
//
// Bytes come from clients: whatever is no MessagePack is a Lua error. The coding is msgpack-c's.
#pragma once

#include <lua.hpp>

namespace weir::kv {

// Returns the library's table.
int open_message_pack(lua_State* lua);

}  // namespace weir::kv
