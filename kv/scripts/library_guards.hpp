// Guards for three functions of Debian's libraries that trust their arguments.
//
//   bit.tohex     a digit count of -2^31 reads far beyond its buffer (CVE-2024-31449)
//   unpack        a range of more than 2^31 values overflows the stack (CVE-2025-46817)
//   cjson.encode  counts bytes in an int, which large values overflow (CVE-2022-24834),
//                 outside of Lua's memory
//
// And cjson pays for the numbers that it reads and writes (budget.hpp).
#pragma once

#include <lua.hpp>

namespace weir::kv {

// Call with the libraries open and not yet protected.
void guard_libraries(lua_State* lua);

}  // namespace weir::kv
