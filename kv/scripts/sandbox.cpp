#include "kv/scripts/sandbox.hpp"

#include <string>
#include <string_view>

#include "kv/scripts/budget.hpp"

namespace weir::kv {

namespace {

// Registry keys: a table that maps stand-ins to real tables, and the real table of the globals.
constexpr const char* stand_ins = "weir.stand_ins";
constexpr const char* globals = "weir.globals";
// What getmetatable() returns for a stand-in: an empty table that refuses changes, as Redis's read-only ones
// do.
constexpr const char* shown_metatable = "weir.shown_metatable";

// Pushes the real table of the stand-in at `index` and returns true; for any other value pushes nothing.
bool push_real(lua_State* lua, int index) {
  if (lua_type(lua, index) != LUA_TTABLE) return false;
  lua_pushvalue(lua, index);
  lua_getfield(lua, LUA_REGISTRYINDEX, stand_ins);
  lua_insert(lua, -2);
  lua_rawget(lua, -2);
  lua_remove(lua, -2);
  if (lua_istable(lua, -1)) return true;
  lua_pop(lua, 1);
  return false;
}

int refuse_change(lua_State* lua) { return luaL_error(lua, "Attempt to modify a readonly table"); }

// Likewise for a function that Redis leaves unchanged: its error has no place in front.
int refuse_raw_change(lua_State* lua) {
  lua_pushliteral(lua, "Attempt to modify a readonly table");
  return lua_error(lua);
}

int unknown_global(lua_State* lua) {
  const char* name = lua_tostring(lua, 2);
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                    name != nullptr ? name : "(null)");
}

// Makes the metatable on top of the stack that of the table below it.
void make_stand_in(lua_State* lua, lua_CFunction unknown) {
  lua_newtable(lua);  // real, stand-in
  lua_newtable(lua);  // real, stand-in, metatable
  if (unknown != nullptr) {
    lua_newtable(lua);
    lua_pushcfunction(lua, unknown);
    lua_setfield(lua, -2, "__index");
    lua_setmetatable(lua, -4);  // of the real table
  }
  lua_pushvalue(lua, -3);
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, refuse_change);
  lua_setfield(lua, -2, "__newindex");
  lua_getfield(lua, LUA_REGISTRYINDEX, shown_metatable);
  if (lua_isnil(lua, -1)) {  // this makes that table, which shows nothing
    lua_pop(lua, 1);
    lua_pushboolean(lua, 0);
  }
  lua_setfield(lua, -2, "__metatable");
  lua_setmetatable(lua, -2);  // real, stand-in
  lua_getfield(lua, LUA_REGISTRYINDEX, stand_ins);
  lua_pushvalue(lua, -2);
  lua_pushvalue(lua, -4);
  lua_rawset(lua, -3);
  lua_pop(lua, 1);
  lua_remove(lua, -2);  // stand-in
}

int next_in(lua_State* lua, int table) {
  lua_settop(lua, 2);
  if (lua_next(lua, table) != 0) return 2;
  lua_pushnil(lua);
  return 1;
}

// next(table, key)
int safe_next(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_settop(lua, 2);
  if (push_real(lua, 1)) lua_replace(lua, 1);
  return next_in(lua, 1);
}

// pairs(table): the iterator gets the stand-in, never the real table.
int safe_pairs(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_pushcfunction(lua, safe_next);
  lua_pushvalue(lua, 1);
  lua_pushnil(lua);
  return 3;
}

int safe_rawget(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  luaL_checkany(lua, 2);
  lua_settop(lua, 2);
  if (push_real(lua, 1)) lua_replace(lua, 1);
  lua_rawget(lua, 1);
  return 1;
}

int safe_rawset(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  luaL_checkany(lua, 2);
  luaL_checkany(lua, 3);
  lua_settop(lua, 3);
  if (push_real(lua, 1)) return refuse_raw_change(lua);
  lua_rawset(lua, 1);
  return 1;
}

int safe_setmetatable(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  const int type = lua_type(lua, 2);
  luaL_argcheck(lua, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table expected");
  if (push_real(lua, 1)) return refuse_raw_change(lua);
  if (luaL_getmetafield(lua, 1, "__metatable") != 0)
    return luaL_error(lua, "cannot change a protected metatable");
  lua_settop(lua, 2);
  lua_setmetatable(lua, 1);
  return 1;
}

// Returns nil and the message, as a failing load() or loadstring() does.
int cannot_load(lua_State* lua) {
  lua_pushnil(lua);
  lua_insert(lua, -2);
  return 2;
}

// Gives the compiler the next piece of the text and pays for it.
const char* next_piece(lua_State* lua, void* rest, std::size_t* size) {
  constexpr std::size_t longest = 4096;
  constexpr std::size_t steps_a_byte = 5;
  auto& text = *static_cast<std::string_view*>(rest);
  const std::string_view piece = text.substr(0, longest);
  Budget::of(lua).spend(lua, steps_a_byte * piece.size());
  text.remove_prefix(piece.size());
  *size = piece.size();
  return piece.data();
}

// Loads source text only: manipulated bytecode could break out of the interpreter.
int load_text(lua_State* lua, std::string_view text, const char* name) {
  if (text.starts_with(LUA_SIGNATURE[0])) {
    lua_pushliteral(lua, "attempt to load bytecode");
    return cannot_load(lua);
  }
  return lua_load(lua, next_piece, &text, name) == 0 ? 1 : cannot_load(lua);
}

int safe_loadstring(lua_State* lua) {
  std::size_t size = 0;
  const char* text = luaL_checklstring(lua, 1, &size);
  return load_text(lua, {text, size}, luaL_optstring(lua, 2, text));
}

// load(function): joins the pieces first, so that bytecode is detected wherever it begins.
int safe_load(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TFUNCTION);
  const char* name = luaL_optstring(lua, 2, "=(load)");
  luaL_Buffer whole;
  lua_settop(lua, 2);
  luaL_buffinit(lua, &whole);
  for (;;) {
    lua_pushvalue(lua, 1);
    lua_call(lua, 0, 1);
    if (lua_isnil(lua, -1)) break;
    std::size_t size = 0;
    if (lua_tolstring(lua, -1, &size) == nullptr)
      return luaL_error(lua, "reader function must return a string");
    if (size == 0) break;
    luaL_addvalue(&whole);
  }
  lua_pop(lua, 1);
  luaL_pushresult(&whole);
  std::size_t size = 0;
  const char* text = lua_tolstring(lua, -1, &size);
  return load_text(lua, {text, size}, name);
}

constexpr luaL_Reg replacements[] = {{"next", safe_next},
                                     {"pairs", safe_pairs},
                                     {"rawget", safe_rawget},
                                     {"rawset", safe_rawset},
                                     {"setmetatable", safe_setmetatable},
                                     {"load", safe_load},
                                     {"loadstring", safe_loadstring}};

constexpr const char* dropped[] = {"dofile",  "loadfile", "print",  "getfenv",
                                   "setfenv", "newproxy", "module", "require"};

constexpr const char* libraries[] = {"string", "table",    "math", "coroutine", "os",
                                     "cjson",  "cmsgpack", "bit",  "struct"};

}  // namespace

void refuse_protected(lua_State* lua, int index) {
  if (lua_getmetatable(lua, index) == 0) return;  // all stand-ins have one
  lua_pop(lua, 1);
  if (push_real(lua, index)) refuse_raw_change(lua);
}

void protect(lua_State* lua) { make_stand_in(lua, nullptr); }
void protect_strictly(lua_State* lua) { make_stand_in(lua, unknown_global); }

void show_as_globals(lua_State* lua) {
  lua_getmetatable(lua, LUA_GLOBALSINDEX);
  lua_insert(lua, -2);
  lua_setfield(lua, -2, "__index");
  lua_pop(lua, 1);
}

void show_own_globals(lua_State* lua) {
  lua_getfield(lua, LUA_REGISTRYINDEX, globals);
  show_as_globals(lua);
}

void set_global(lua_State* lua, const char* name) {
  lua_getfield(lua, LUA_REGISTRYINDEX, globals);
  lua_insert(lua, -2);
  lua_pushstring(lua, name);
  lua_insert(lua, -2);
  lua_rawset(lua, -3);
  lua_pop(lua, 1);
}

void close_sandbox(lua_State* lua) {
  lua_newtable(lua);
  lua_setfield(lua, LUA_REGISTRYINDEX, stand_ins);
  lua_newtable(lua);
  protect(lua);
  lua_setfield(lua, LUA_REGISTRYINDEX, shown_metatable);
  for (const char* name : dropped) {
    lua_pushnil(lua);
    lua_setglobal(lua, name);
  }
  for (const luaL_Reg& function : replacements) {
    lua_pushcfunction(lua, function.func);
    lua_setglobal(lua, function.name);
  }
  // All strings share one metatable; scripts must not reach the real library through it.
  lua_pushliteral(lua, "");
  lua_getmetatable(lua, -1);
  lua_getfield(lua, LUA_REGISTRYINDEX, shown_metatable);
  lua_setfield(lua, -2, "__metatable");
  lua_pop(lua, 2);
  for (const char* name : libraries) {
    lua_getglobal(lua, name);
    protect(lua);
    lua_setglobal(lua, name);
  }
  lua_pushvalue(lua, LUA_GLOBALSINDEX);
  lua_pushvalue(lua, -1);
  lua_setfield(lua, LUA_REGISTRYINDEX, globals);
  make_stand_in(lua, unknown_global);
  lua_pushvalue(lua, -1);
  set_global(lua, "_G");
  lua_replace(lua, LUA_GLOBALSINDEX);
}

}  // namespace weir::kv
