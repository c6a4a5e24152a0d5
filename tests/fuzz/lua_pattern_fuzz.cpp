// Patterns of Lua, which come with scripts: whatever they are, matching stays within the subject, within the
// stack, and within the steps it is allowed. tests/kv/lua_libraries_test.cpp compares it with Lua's own.
//
// The input is a pattern, a line end, and the subject.
#include <cstdint>
#include <cstdlib>
#include <lua.hpp>
#include <string_view>

#include "kv/scripts/budget.hpp"
#include "kv/scripts/string_library.hpp"

namespace {

using weir::kv::Budget;

void require(bool holds) {
  if (!holds) std::abort();
}

// find, match, gmatch and gsub agree about what they find, and a subject whose matches are replaced by
// themselves stays as it is. Of a pattern with a zero byte find and match need not agree: as in Lua 5.1, find
// takes it whole if there is no special character before the zero byte, and the others end it there.
constexpr std::string_view agreement = R"(
local subject, pattern = ...
local from, to = string.find(subject, pattern)
local again = {string.match(subject, pattern)}
local same = not pattern:find('\0', 1, true)
if same and not from then return #again == 0 or again[1] == nil end
if same and again[1] == nil or from and (from < 1 or to > #subject or from > to + 1) then return false end
for _ in string.gmatch(subject, pattern) do end
return string.gsub(subject, pattern, '%0') == subject
)";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t memory_limit = 16u << 20;
  constexpr std::uint64_t most_looks = 20;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view pattern = input.substr(0, input.find('\n'));
  const std::string_view subject = pattern.size() == size ? "" : input.substr(pattern.size() + 1);
  Budget budget(memory_limit);
  lua_State* const lua = lua_newstate(Budget::allocate, &budget);
  require(lua != nullptr);
  luaL_openlibs(lua);
  weir::kv::replace_string_functions(lua);
  budget.look = [&budget](lua_State* running) {
    require(budget.looks() <= most_looks);
    if (budget.looks() == most_looks) luaL_error(running, "enough");
  };
  require(luaL_loadbuffer(lua, agreement.data(), agreement.size(), "agreement") == 0);
  lua_pushlstring(lua, subject.data(), subject.size());
  lua_pushlstring(lua, pattern.data(), pattern.size());
  const int status = [&] {
    const Budget::Limited limited(budget);
    return lua_pcall(lua, 2, 1, 0);
  }();
  if (status == 0) require(lua_toboolean(lua, -1) != 0);
  budget.look = nullptr;
  lua_close(lua);
  return 0;
}
