// Protected tables, and the functions of Lua's base library that know them.
//
// A protected table is an empty stand-in; its metatable, which scripts cannot see, has the real one.
// Functions that look past metatables (rawget, next, pairs...) look into the real table, those that change
// one refuse.
#pragma once

#include <lua.hpp>

namespace weir::kv {

// Replaces the table on top of the stack by its stand-in.
void protect(lua_State* lua);

// With the libraries open: drops what a script must not reach, replaces what would look past a stand-in or
// take bytecode, and protects the libraries and the globals themselves.
void close_sandbox(lua_State* lua);

// Makes the value on top of the stack the global of that name, and pops it. After close_sandbox() only.
void set_global(lua_State* lua, const char* name);

}  // namespace weir::kv
