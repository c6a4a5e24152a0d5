// The library struct of Redis scripts: converts numbers and texts to bytes and back, by a format like "<I4s".
//
//   > < =   big, little or the machine's byte order from here on     !n  align numbers to at most n bytes
//   b B h H l L T   integers of 1, 2, 8 and 8 bytes, signed and not  iN IN  integers of N bytes (4)
//   f d     float, double     s  text up to a zero     cN  N characters (c0: as the number before says)
//   x       a byte of padding
//
// The bytes come from clients: too few of them are a Lua error.
#pragma once

#include <lua.hpp>

namespace weir::kv {

// Pushes the library's table.
int open_struct(lua_State* lua);

}  // namespace weir::kv
