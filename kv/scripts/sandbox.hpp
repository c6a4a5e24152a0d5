// Protected tables, and versions of Lua's base functions that know about them.
//
// A protected table is an empty stand-in; its metatable, which scripts cannot see, holds the real one.
// Functions that bypass metatables (rawget, next, pairs...) look into the real table; those that would
// change a protected table refuse.
#pragma once

#include <lua.hpp>

namespace weir::kv {

// Replaces the table on top of the stack by its stand-in.
void protect(lua_State* lua);
// Likewise; reading what the table lacks is an error.
void protect_strictly(lua_State* lua);

// Call with the libraries open. Removes what scripts must not reach, replaces functions that bypass stand-ins
// or accept bytecode, and protects the libraries and the globals themselves.
void close_sandbox(lua_State* lua);

// Raises an error if the table at `index` is protected. For functions that write past metatables.
void refuse_protected(lua_State* lua, int index);

// Pops the value on top of the stack and makes it the global of that name. Only after close_sandbox().
void set_global(lua_State* lua, const char* name);

// Pops a protected table and shows it to code in place of the globals, until show_own_globals(). Functions
// that are made meanwhile see the globals again afterwards.
void show_as_globals(lua_State* lua);
void show_own_globals(lua_State* lua);

}  // namespace weir::kv
