#include "kv/scripts/table_sort.hpp"

#include <algorithm>

#include "kv/scripts/budget.hpp"

namespace weir::kv {

namespace {

constexpr int table = 1;
constexpr int order = 2;  // the function, or nil

class Sort {
 public:
  explicit Sort(lua_State* lua) : lua_(lua), budget_(Budget::of(lua)) {}

  void run(int low, int high);

 private:
  bool before(int a, int b);
  int part(int low, int high);
  void get(int index) { lua_rawgeti(lua_, table, index); }
  // table[a] = what is on top of the stack, table[b] = what is below it
  void set_both(int a, int b) {
    lua_rawseti(lua_, table, a);
    lua_rawseti(lua_, table, b);
  }
  // Lets the elements change places if the one at `b` comes first.
  void put_in_order(int a, int b) {
    get(a);
    get(b);
    before(-1, -2) ? set_both(a, b) : lua_pop(lua_, 2);
  }

  lua_State* const lua_;
  Budget& budget_;
};

// Compares the values at two places of the stack, counted from its top.
bool Sort::before(int a, int b) {
  constexpr std::size_t steps = 5;
  budget_.spend(lua_, steps);
  if (lua_isnil(lua_, order)) {
    // A zero byte in a text makes Lua begin anew behind it, so that a byte may cost as much as a step.
    if (lua_type(lua_, a) == LUA_TSTRING && lua_type(lua_, b) == LUA_TSTRING)
      budget_.spend(lua_, std::min(lua_objlen(lua_, a), lua_objlen(lua_, b)));
    return lua_lessthan(lua_, a, b) != 0;
  }
  lua_pushvalue(lua_, order);
  lua_pushvalue(lua_, a - 1);
  lua_pushvalue(lua_, b - 2);
  lua_call(lua_, 2, 1);
  const bool result = lua_toboolean(lua_, -1) != 0;
  lua_pop(lua_, 1);
  return result;
}

// Puts the elements of [low, high], more than three, on the two sides of a pivot. Returns the pivot's place.
int Sort::part(int low, int high) {
  const int middle = (low + high) / 2;
  get(middle);  // the pivot, which stays on the stack; its place until the end is high - 1
  lua_pushvalue(lua_, -1);
  get(high - 1);
  set_both(middle, high - 1);
  int i = low, j = high - 1;
  for (;;) {
    for (get(++i); before(-1, -2); get(++i)) {
      if (i > high) luaL_error(lua_, "invalid order function for sorting");
      lua_pop(lua_, 1);
    }
    for (get(--j); before(-3, -1); get(--j)) {
      if (j < low) luaL_error(lua_, "invalid order function for sorting");
      lua_pop(lua_, 1);
    }
    if (j < i) break;
    set_both(i, j);
  }
  lua_pop(lua_, 3);
  get(high - 1);
  get(i);
  set_both(high - 1, i);
  return i;
}

// Sorts the larger side in this call and the smaller one in another, so calls nest 31 deep at most.
void Sort::run(int low, int high) {
  while (low < high) {
    put_in_order(low, high);
    if (high - low == 1) return;
    const int middle = (low + high) / 2;
    get(middle);
    get(low);
    if (before(-2, -1)) {
      set_both(middle, low);
    } else {
      lua_pop(lua_, 1);
      get(high);
      before(-1, -2) ? set_both(middle, high) : lua_pop(lua_, 2);
    }
    if (high - low == 2) return;
    const int pivot = part(low, high);
    if (pivot - low < high - pivot) {
      run(low, pivot - 1);
      low = pivot + 1;
    } else {
      run(pivot + 1, high);
      high = pivot - 1;
    }
  }
}

}  // namespace

int sort_table(lua_State* lua) {
  luaL_checktype(lua, table, LUA_TTABLE);
  const auto length = static_cast<int>(lua_objlen(lua, table));
  luaL_checkstack(lua, 40, "");
  if (!lua_isnoneornil(lua, order)) luaL_checktype(lua, order, LUA_TFUNCTION);
  lua_settop(lua, 2);
  Sort(lua).run(1, length);
  return 0;
}

}  // namespace weir::kv
