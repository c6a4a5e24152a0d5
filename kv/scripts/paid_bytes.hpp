// Bytes that a library function puts together outside of Lua's memory. They count as if they were within, and
// each piece is paid for (budget.hpp).
#pragma once

#include <cstdint>
#include <lua.hpp>
#include <string>
#include <string_view>

#include "kv/scripts/budget.hpp"

namespace weir::kv {

class PaidBytes {
 public:
  explicit PaidBytes(lua_State* lua) : lua_(lua), budget_(Budget::of(lua)) {}

  // Both raise a Lua error if the memory does not suffice. `bytes` must stay on Lua's stack.
  void add(std::string_view bytes) {
    make_room(bytes.size());
    bytes_.append(bytes);
  }
  void add(std::size_t count, char byte) {
    make_room(count);
    bytes_.append(count, byte);
  }
  std::size_t size() const { return bytes_.size(); }
  // Pushes them as a string.
  void push() const { lua_pushlstring(lua_, bytes_.data(), bytes_.size()); }

 private:
  void make_room(std::size_t more) {
    budget_.spend_bytes(lua_, more);
    const std::size_t used = budget_.memory() + bytes_.size();
    if (used > budget_.memory_limit() || more > budget_.memory_limit() - used)
      luaL_error(lua_, "not enough memory");
  }

  lua_State* const lua_;
  Budget& budget_;
  std::string bytes_;
};

}  // namespace weir::kv
