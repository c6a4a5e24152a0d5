#include "kv/scripts/library_guards.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "kv/scripts/budget.hpp"

namespace weir::kv {

namespace {

// The largest size of a value as JSON in the worst case: cjson allocates that much before it writes.
constexpr std::size_t most_json_bytes = 256 * 1024 * 1024;
constexpr std::size_t worst_of_a_byte = 6;  // "\u0000"
constexpr std::size_t worst_of_a_number = 32;

// The numbers of cjson, which come one after another without anything else that is paid for, are paid for
// while one of these exists.
Budget* paying_for_numbers = nullptr;
class PaidNumbers {
 public:
  explicit PaidNumbers(Budget& budget) : before_(std::exchange(paying_for_numbers, &budget)) {}
  ~PaidNumbers() { paying_for_numbers = before_; }
  PaidNumbers(const PaidNumbers&) = delete;
  PaidNumbers& operator=(const PaidNumbers&) = delete;

 private:
  Budget* const before_;
};
void pay_for_number() {
  constexpr std::size_t steps_a_number = 8;  // some hundred nanoseconds
  if (paying_for_numbers != nullptr) paying_for_numbers->spend_and_raise_nothing(steps_a_number);
}

// Calls the original function with the arguments on the stack.
int call_original(lua_State* lua) {
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, lua_gettop(lua) - 1, LUA_MULTRET);
  return lua_gettop(lua);
}

int tohex(lua_State* lua) {
  constexpr lua_Number most_digits = 8;
  if (lua_isnumber(lua, 2) != 0) {
    const lua_Number digits = lua_tonumber(lua, 2);
    const bool sane = digits >= -most_digits && digits <= most_digits;
    lua_pushnumber(lua, sane ? digits : digits < 0 ? -most_digits : most_digits);
    lua_replace(lua, 2);
  }
  return call_original(lua);
}

// Subtracts from `left` the worst-case size of the value on top of the stack. False: it exceeds `left`. True
// for nesting that is too deep for cjson, which refuses it itself.
bool take_json(lua_State* lua, std::size_t& left, int depth) {
  constexpr int deepest = 1000;
  Budget::of(lua).spend(lua, 2);
  std::size_t bytes = worst_of_a_number;
  if (lua_type(lua, -1) == LUA_TSTRING) bytes += worst_of_a_byte * lua_objlen(lua, -1);
  if (bytes > left) return false;
  left -= bytes;
  if (!lua_istable(lua, -1) || depth == deepest || lua_checkstack(lua, 4) == 0) return true;
  for (lua_pushnil(lua); lua_next(lua, -2) != 0; lua_pop(lua, 1)) {
    if (!take_json(lua, left, depth + 1)) return false;
    lua_pushvalue(lua, -2);
    const bool fits = take_json(lua, left, depth + 1);
    lua_pop(lua, 1);
    if (!fits) return false;
  }
  return true;
}

int encode(lua_State* lua) {
  std::size_t left = most_json_bytes;
  const int count = lua_gettop(lua);
  if (count == 1 && !take_json(lua, left, 0)) return luaL_error(lua, "Cannot serialise, value is too large");
  lua_settop(lua, count);
  const PaidNumbers numbers(Budget::of(lua));
  return call_original(lua);
}

// Runs the original in its own place, with its upvalue: where its errors say that they happened is the line
// that called it.
int decode(lua_State* lua) {
  const PaidNumbers numbers(Budget::of(lua));
  return lua_tocfunction(lua, lua_upvalueindex(2))(lua);
}

// unpack(table, from, to): Lua counts the values in an int.
int unpack(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  const long long from = luaL_optint(lua, 2, 1);
  const long long to =
      lua_isnoneornil(lua, 3) ? static_cast<long long>(lua_objlen(lua, 1)) : luaL_checkint(lua, 3);
  if (to < from) return 0;
  if (to - from >= LUAI_MAXCSTACK) return luaL_error(lua, "too many results to unpack");
  return call_original(lua);
}

void guard(lua_State* lua, const char* library, const char* name, lua_CFunction by) {
  lua_getglobal(lua, library);
  lua_getfield(lua, -1, name);
  lua_pushcclosure(lua, by, 1);
  lua_setfield(lua, -2, name);
  lua_pop(lua, 1);
}

void stand_in(lua_State* lua, const char* library, const char* name, lua_CFunction by) {
  lua_getglobal(lua, library);
  lua_getfield(lua, -1, name);
  lua_getupvalue(lua, -1, 1);
  lua_insert(lua, -2);
  lua_pushcclosure(lua, by, 2);
  lua_setfield(lua, -2, name);
  lua_pop(lua, 1);
}

}  // namespace

void guard_libraries(lua_State* lua) {
  guard(lua, "bit", "tohex", tohex);
  guard(lua, "cjson", "encode", encode);
  stand_in(lua, "cjson", "decode", decode);
  guard(lua, "_G", "unpack", unpack);
}

}  // namespace weir::kv

// cjson's conversions of numbers (its fpconv.c), as lua_cjson.c declares them. The locale is "C": its own
// ones adapt to others.
extern "C" {

void fpconv_init(void);
double fpconv_strtod(const char* text, char** end);
int fpconv_g_fmt(char* into, double number, int precision);

void fpconv_init(void) {}

double fpconv_strtod(const char* text, char** end) {
  weir::kv::pay_for_number();
  return std::strtod(text, end);
}

int fpconv_g_fmt(char* into, double number, int precision) {
  constexpr std::size_t room = 32;  // its FPCONV_G_FMT_BUFSIZE: "-1.2345678901234567e+308" and a zero byte
  weir::kv::pay_for_number();
  const auto written = std::to_chars(into, into + room - 1, number, std::chars_format::general, precision);
  *written.ptr = '\0';
  return static_cast<int>(written.ptr - into);
}

}  // extern "C"
