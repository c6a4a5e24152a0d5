#include "kv/scripts/table_library.hpp"

#include <algorithm>

#include "kv/scripts/budget.hpp"
#include "kv/scripts/lua_buffer.hpp"
#include "kv/scripts/lua_values.hpp"
#include "kv/scripts/sandbox.hpp"
#include "kv/scripts/table_sort.hpp"

namespace weir::kv {

namespace {

int length_of_table(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  return static_cast<int>(lua_objlen(lua, 1));
}

// table[to] = table[from]
void move_element(lua_State* lua, int from, int to) {
  constexpr std::size_t steps = 3;
  Budget::of(lua).spend(lua, steps);
  lua_rawgeti(lua, 1, from);
  lua_rawseti(lua, 1, to);
}

int insert(lua_State* lua) {
  int end = length_of_table(lua) + 1;
  refuse_protected(lua, 1);
  int position = end;
  const int count = lua_gettop(lua);
  if (count != 2 && count != 3) return luaL_error(lua, "wrong number of arguments to 'insert'");
  if (count == 3) {
    position = luaL_checkint(lua, 2);
    end = std::max(end, position);
    for (int i = end; i > position; --i) move_element(lua, i - 1, i);
  }
  lua_rawseti(lua, 1, position);
  return 0;
}

int remove(lua_State* lua) {
  const int last = length_of_table(lua);
  refuse_protected(lua, 1);
  const int position = luaL_optint(lua, 2, last);
  if (position < 1 || position > last) return 0;
  lua_rawgeti(lua, 1, position);
  for (int i = position; i < last; ++i) move_element(lua, i + 1, i);
  lua_pushnil(lua);
  lua_rawseti(lua, 1, last);
  return 1;
}

void add_element(lua_State* lua, luaL_Buffer& out, int index) {
  Budget::of(lua).spend(lua, 1);
  lua_rawgeti(lua, 1, index);
  if (lua_isstring(lua, -1) == 0) {
    luaL_error(lua, "invalid value (%s) at index %d in table for 'concat'", luaL_typename(lua, -1), index);
  }
  Budget::of(lua).spend_bytes(lua, lua_objlen(lua, -1));
  luaL_addvalue(&out);
}

int concat(lua_State* lua) {
  std::size_t size = 0;
  const char* between = luaL_optlstring(lua, 2, "", &size);
  luaL_checktype(lua, 1, LUA_TTABLE);
  int i = luaL_optint(lua, 3, 1);
  const int last = lua_isnoneornil(lua, 4) ? static_cast<int>(lua_objlen(lua, 1)) : luaL_checkint(lua, 4);
  luaL_Buffer out;
  luaL_buffinit(lua, &out);
  for (; i < last; ++i) {
    add_element(lua, out, i);
    add_paid(lua, out, {between, size});
  }
  if (i == last) add_element(lua, out, i);
  luaL_pushresult(&out);
  return 1;
}

// Calls the function at 2 with the two values on top of the stack. True: it returned something, now on top.
bool call_with_pair(lua_State* lua) {
  constexpr std::size_t steps = 10;
  Budget::of(lua).spend(lua, steps);
  lua_pushvalue(lua, 2);
  lua_insert(lua, -3);
  lua_call(lua, 2, 1);
  if (!lua_isnil(lua, -1)) return true;
  lua_pop(lua, 1);
  return false;
}

int foreachi(lua_State* lua) {
  const int last = length_of_table(lua);
  luaL_checktype(lua, 2, LUA_TFUNCTION);
  for (int i = 1; i <= last; ++i) {
    lua_pushinteger(lua, i);
    lua_rawgeti(lua, 1, i);
    if (call_with_pair(lua)) return 1;
  }
  return 0;
}

int foreach (lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  luaL_checktype(lua, 2, LUA_TFUNCTION);
  for (lua_pushnil(lua); lua_next(lua, 1) != 0;) {
    lua_pushvalue(lua, -2);
    lua_insert(lua, -2);
    if (call_with_pair(lua)) return 1;
  }
  return 0;
}

int maxn(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_Number largest = 0;
  for (lua_pushnil(lua); lua_next(lua, 1) != 0; lua_pop(lua, 1)) {
    Budget::of(lua).spend(lua, 2);
    if (lua_type(lua, -2) == LUA_TNUMBER) largest = std::max(largest, lua_tonumber(lua, -2));
  }
  lua_pushnumber(lua, largest);
  return 1;
}

}  // namespace

void replace_table_functions(lua_State* lua) {
  constexpr luaL_Reg functions[] = {{"insert", insert},     {"remove", remove},   {"concat", concat},
                                    {"foreachi", foreachi}, {"foreach", foreach}, {"maxn", maxn},
                                    {"sort", sort_table}};
  lua_getglobal(lua, LUA_TABLIBNAME);
  for (const luaL_Reg& function : functions) {
    lua_pushcfunction(lua, function.func);
    lua_setfield(lua, -2, function.name);
  }
  lua_pop(lua, 1);
}

}  // namespace weir::kv
