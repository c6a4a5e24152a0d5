// Converts values between Lua and the protocol by Redis's rules: a command's reply into a Lua value, and a
// script's result into a reply.
//
// Threading: the server's one thread. Errors are Lua errors.
#pragma once

#include <lua.hpp>
#include <string_view>

#include "kv/resp/reply.hpp"

namespace weir::kv {

// Pushes the first reply of `replies` and removes it there. It must be well-formed, as our own replies are.
void push_reply(lua_State* lua, std::string_view& replies);

// Where a script's result goes.
struct ResultTarget {
  Reply& reply;
  const ReplyQueue& queue;  // into which `reply` writes
  bool booleans;  // they stay booleans, as for a script that uses RESP3; otherwise true becomes 1 and false
                  // null
};

// Pops a value that is no table and writes it as a reply. Raises no error.
void write_scalar(lua_State* lua, const ResultTarget& to);
// Likewise any value. An error leaves half a reply in the queue.
void write_value(lua_State* lua, const ResultTarget& to);

// The text at that index of the stack; a number there is converted to text. Valid as long as the value.
std::string_view text_at(lua_State* lua, int index);

// Pushes {err = text}, the form of errors in scripts.
void push_error(lua_State* lua, std::string_view text);

}  // namespace weir::kv
