// struct, as scripts know it from Redis: numbers and texts to bytes and back by a format such as "<I4s".
//
//   > < =   big, little or the machine's byte order from here on     !n  align numbers to at most n bytes
//   b B h H l L T   integers of 1, 2, 8 and 8 bytes, signed and not  iN IN  integers of N bytes (4)
//   f d     float, double     s  text up to a zero     cN  N characters (c0: as many as the number before
//   says) x       a byte of padding
//
// Bytes come from clients: too few of them are a Lua error.
#pragma once

#include <lua.hpp>

namespace weir::kv {

// Returns the library's table.
int open_struct(lua_State* lua);

}  // namespace weir::kv
