// Values between Lua and the protocol, by Redis's rules: what a command replied becomes a Lua value, and what
// a script returns becomes a reply.
//
// Threading: the server's one thread. Errors are Lua errors.
#pragma once

#include <lua.hpp>
#include <string_view>

#include "kv/resp/reply.hpp"

namespace weir::kv {

// Pushes the first reply in `replies` and drops it from there. A well-formed one: it is our own.
void push_reply(lua_State* lua, std::string_view& replies);

// Writes the value on top of the stack as a reply and pops it. `booleans`: they stay booleans, as a script
// that speaks RESP3 wants; else true is 1 and false is null.
void reply_value(lua_State* lua, Reply& reply, bool booleans);

// The text at that place of the stack; a number there becomes text. Lives as long as the value.
std::string_view text_at(lua_State* lua, int index);

// Pushes {err = text}, as scripts see errors.
void push_error(lua_State* lua, std::string_view text);

}  // namespace weir::kv
