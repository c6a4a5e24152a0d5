#include "kv/scripts/coroutines.hpp"

#include "kv/scripts/budget.hpp"

namespace weir::kv {

namespace {

// What a coroutine may run before its own hook looks at the clock is up to a hundred times as much, but even
// so no more than some 100 ms pass.
constexpr std::size_t steps_of_a_switch = 1000;

// Why the coroutine cannot be resumed; null: it can.
const char* why_not(lua_State* lua, lua_State* coroutine) {
  if (lua == coroutine) return "running";
  if (lua_status(coroutine) == LUA_YIELD) return nullptr;
  if (lua_status(coroutine) != 0) return "dead";
  lua_Debug at;
  if (lua_getstack(coroutine, 0, &at) != 0) return "normal";  // it resumed another one
  return lua_gettop(coroutine) == 0 ? "dead" : nullptr;
}

// Passes the topmost `count` values to the coroutine. Returns how many it gave back, which are on top then;
// -1: it failed with the error on top.
int switch_to(lua_State* lua, lua_State* coroutine, int count) {
  Budget& budget = Budget::of(lua);
  budget.spend(lua, steps_of_a_switch);
  if (lua_checkstack(coroutine, count) == 0) luaL_error(lua, "too many arguments to resume");
  if (const char* reason = why_not(lua, coroutine)) {
    lua_pushfstring(lua, "cannot resume %s coroutine", reason);
    return -1;
  }
  lua_xmove(lua, coroutine, count);
  lua_setlevel(lua, coroutine);
  budget.runs(coroutine);
  const int status = lua_resume(coroutine, count);
  budget.runs(lua);
  if (status != 0 && status != LUA_YIELD) {
    lua_xmove(coroutine, lua, 1);
    return -1;
  }
  const int results = lua_gettop(coroutine);
  if (lua_checkstack(lua, results + 1) == 0) luaL_error(lua, "too many results to resume");
  lua_xmove(coroutine, lua, results);
  return results;
}

int create(lua_State* lua) {
  lua_State* const coroutine = lua_newthread(lua);
  luaL_argcheck(lua, lua_isfunction(lua, 1) && lua_iscfunction(lua, 1) == 0, 1, "Lua function expected");
  lua_pushvalue(lua, 1);
  lua_xmove(lua, coroutine, 1);
  return 1;
}

int resume(lua_State* lua) {
  lua_State* const coroutine = lua_tothread(lua, 1);
  luaL_argcheck(lua, coroutine != nullptr, 1, "coroutine expected");
  const int results = switch_to(lua, coroutine, lua_gettop(lua) - 1);
  lua_pushboolean(lua, results >= 0 ? 1 : 0);
  lua_insert(lua, results >= 0 ? -(results + 1) : -2);
  return results >= 0 ? results + 1 : 2;
}

int resume_wrapped(lua_State* lua) {
  const int results = switch_to(lua, lua_tothread(lua, lua_upvalueindex(1)), lua_gettop(lua));
  if (results >= 0) return results;
  if (lua_isstring(lua, -1) != 0) {
    luaL_where(lua, 1);
    lua_insert(lua, -2);
    lua_concat(lua, 2);
  }
  return lua_error(lua);
}

int wrap(lua_State* lua) {
  create(lua);
  lua_pushcclosure(lua, resume_wrapped, 1);
  return 1;
}

}  // namespace

void replace_coroutine_functions(lua_State* lua) {
  constexpr luaL_Reg functions[] = {{"create", create}, {"resume", resume}, {"wrap", wrap}};
  lua_getglobal(lua, LUA_COLIBNAME);
  for (const luaL_Reg& function : functions) {
    lua_pushcfunction(lua, function.func);
    lua_setfield(lua, -2, function.name);
  }
  lua_pop(lua, 1);
}

}  // namespace weir::kv
