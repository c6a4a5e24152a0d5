#include "kv/scripts/interpreter.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <new>
#include <utility>

#include "kv/scripts/coroutines.hpp"
#include "kv/scripts/library_guards.hpp"
#include "kv/scripts/message_pack.hpp"
#include "kv/scripts/sandbox.hpp"
#include "kv/scripts/string_library.hpp"
#include "kv/scripts/struct_library.hpp"
#include "kv/scripts/table_library.hpp"

extern "C" {
int luaopen_cjson(lua_State* lua);
int luaopen_bit(lua_State* lua);
}

namespace weir::kv {

namespace {

void open(lua_State* lua, const char* name, lua_CFunction library) {
  lua_pushcfunction(lua, library);
  lua_pushstring(lua, name);
  lua_call(lua, 1, 0);
}

InterpreterState& state_of(lua_State* lua) {
  return *static_cast<InterpreterState*>(lua_touserdata(lua, lua_upvalueindex(1)));
}
unsigned short* random_state(lua_State* lua) { return state_of(lua).random.data(); }

// math.random() and math.randomseed() with the same numbers as Redis.
int random_number(lua_State* lua) {
  constexpr long most = 0x7fffffff;
  const lua_Number part =
      static_cast<lua_Number>(nrand48(random_state(lua)) % most) / static_cast<lua_Number>(most);
  const int count = lua_gettop(lua);
  if (count == 0) return lua_pushnumber(lua, part), 1;
  if (count > 2) return luaL_error(lua, "wrong number of arguments");
  const lua_Integer low = count == 2 ? luaL_checkint(lua, 1) : 1;
  const lua_Integer high = luaL_checkint(lua, count);
  luaL_argcheck(lua, low <= high, count, "interval is empty");
  lua_pushnumber(lua,
                 std::floor(part * static_cast<lua_Number>(high - low + 1)) + static_cast<lua_Number>(low));
  return 1;
}

void seed_random(unsigned short* state, std::uint32_t seed) {
  state[0] = 0x330e;
  state[1] = static_cast<unsigned short>(seed);
  state[2] = static_cast<unsigned short>(seed >> 16);
}

int random_seed(lua_State* lua) {
  seed_random(random_state(lua), static_cast<std::uint32_t>(luaL_checkint(lua, 1)));
  return 0;
}

// Collects about so many kilobytes; true: a cycle has ended.
bool collect_some(lua_State* lua, int kilobytes) {
  constexpr int at_once = 64;
  constexpr std::size_t steps_a_kilobyte = 100;
  for (;; kilobytes -= at_once) {
    const int piece = std::clamp(kilobytes, 0, at_once);
    Budget::of(lua).spend(lua, steps_a_kilobyte * static_cast<std::size_t>(1 + piece));
    if (lua_gc(lua, LUA_GCSTEP, piece) != 0) return true;
    if (kilobytes <= at_once) return false;
  }
}

// The first cycle may have begun before the last garbage was made.
void collect_all(lua_State* lua) {
  constexpr int no_end = std::numeric_limits<int>::max();
  for (int cycles = 0; cycles < 2; ++cycles) {
    while (!collect_some(lua, no_end)) {
    }
  }
}

// collectgarbage() of Lua 5.1 (manual, 5.1), which notes what a later script must not find changed.
int collect_garbage(lua_State* lua) {
  constexpr const char* names[] = {"stop", "restart",  "collect",    "count",
                                   "step", "setpause", "setstepmul", nullptr};
  constexpr int actions[] = {LUA_GCSTOP, LUA_GCRESTART,  LUA_GCCOLLECT,   LUA_GCCOUNT,
                             LUA_GCSTEP, LUA_GCSETPAUSE, LUA_GCSETSTEPMUL};
  constexpr int bytes_a_unit = 1024;  // of what LUA_GCCOUNT returns
  const int action = actions[luaL_checkoption(lua, 1, "collect", names)];
  const int argument = luaL_optint(lua, 2, 0);
  int result = 0;
  if (action == LUA_GCCOLLECT) {
    collect_all(lua);
  } else if (action == LUA_GCSTEP) {
    result = collect_some(lua, argument) ? 1 : 0;
  } else {
    result = lua_gc(lua, action, argument);
  }
  if (action == LUA_GCSTOP || action == LUA_GCSETPAUSE || action == LUA_GCSETSTEPMUL)
    state_of(lua).collector_changed = true;
  if (action == LUA_GCSTEP) return lua_pushboolean(lua, result), 1;
  const double rest = action == LUA_GCCOUNT ? lua_gc(lua, LUA_GCCOUNTB, 0) : 0;
  lua_pushnumber(lua, result + rest / bytes_a_unit);
  return 1;
}

void replace(lua_State* lua, const char* library, InterpreterState* state,
             std::initializer_list<luaL_Reg> functions) {
  lua_getglobal(lua, library);
  for (const luaL_Reg& function : functions) {
    lua_pushlightuserdata(lua, state);
    lua_pushcclosure(lua, function.func, 1);
    lua_setfield(lua, -2, function.name);
  }
  lua_pop(lua, 1);
}

// Of the library `os`, scripts have the processor time that the server has used (os.clock), as since
// Redis 7.2.
void open_clock(lua_State* lua) {
  open(lua, LUA_OSLIBNAME, luaopen_os);
  lua_getglobal(lua, LUA_OSLIBNAME);
  lua_getfield(lua, -1, "clock");
  lua_newtable(lua);
  lua_insert(lua, -2);
  lua_setfield(lua, -2, "clock");
  lua_setglobal(lua, LUA_OSLIBNAME);
  lua_pop(lua, 1);
}

// Opens Lua's own libraries, without what reaches files, processes and the interpreter's internals.
int open_libraries(lua_State* lua) {
  open(lua, "", luaopen_base);
  open(lua, LUA_TABLIBNAME, luaopen_table);
  open(lua, LUA_STRLIBNAME, luaopen_string);
  open(lua, LUA_MATHLIBNAME, luaopen_math);
  for (lua_CFunction library : {luaopen_cjson, luaopen_bit}) {
    lua_pushcfunction(lua, library);
    lua_call(lua, 0, 1);
    lua_setglobal(lua, library == luaopen_cjson ? "cjson" : "bit");
  }
  guard_libraries(lua);
  replace_coroutine_functions(lua);
  replace_string_functions(lua);
  replace_table_functions(lua);
  lua_pushcfunction(lua, open_message_pack);
  lua_call(lua, 0, 1);
  lua_setglobal(lua, "cmsgpack");
  lua_pushcfunction(lua, open_struct);
  lua_call(lua, 0, 1);
  lua_setglobal(lua, "struct");
  auto* const state = static_cast<InterpreterState*>(lua_touserdata(lua, 1));
  replace(lua, "math", state, {{"random", random_number}, {"randomseed", random_seed}});
  open_clock(lua);
  replace(lua, "_G", state, {{"collectgarbage", collect_garbage}});
  close_sandbox(lua);
  return 0;
}

}  // namespace

Interpreter::Interpreter(std::size_t memory_limit) : budget_(memory_limit) {
  lua_.reset(lua_newstate(Budget::allocate, &budget_));
  if (lua_ == nullptr || lua_cpcall(lua(), [](lua_State* l) { return open_libraries(l); }, &state_) != 0)
    throw std::bad_alloc();
}

void Interpreter::set_global(const char* name) { kv::set_global(lua(), name); }

void Interpreter::set_library(const char* name) {
  protect(lua());
  kv::set_global(lua(), name);
}

// Not without need: each restart begins the next collection at once, whatever the pause.
void Interpreter::restore() {
  if (!std::exchange(state_.collector_changed, false)) return;
  lua_gc(lua(), LUA_GCSETPAUSE, 200);
  lua_gc(lua(), LUA_GCSETSTEPMUL, 200);
  lua_gc(lua(), LUA_GCRESTART, 0);
}

}  // namespace weir::kv
