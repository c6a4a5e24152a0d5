// Appends to Lua's string buffer piece by piece and pays for each piece (budget.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <lua.hpp>
#include <string_view>

#include "kv/scripts/budget.hpp"

namespace weir::kv {

// Appends `size` bytes; write(to, from, count) writes those at the offsets [from, from + count).
template <class Write>
void add_in_pieces(lua_State* lua, luaL_Buffer& out, std::size_t size, Write write) {
  Budget& budget = Budget::of(lua);
  for (std::size_t from = 0; from < size;) {
    char* const end = out.buffer + LUAL_BUFFERSIZE;
    if (out.p == end) luaL_prepbuffer(&out);
    const std::size_t count = std::min(size - from, static_cast<std::size_t>(end - out.p));
    budget.spend(lua, 1 + count / 4);  // the piece is copied a few times more
    write(out.p, from, count);
    luaL_addsize(&out, count);
    from += count;
  }
}

// Likewise a text, which must stay on Lua's stack.
inline void add_paid(lua_State* lua, luaL_Buffer& out, std::string_view text) {
  add_in_pieces(lua, out, text.size(), [text](char* to, std::size_t from, std::size_t count) {
    std::memcpy(to, text.data() + from, count);
  });
}

}  // namespace weir::kv
