// Where Weir's libibverbs.so.1 and librdmacm.so.1 are: beside this program in a build tree, below lib/weir
// once installed.
#pragma once

#include <expected>
#include <string>

namespace weir::command {

// A directory with both. `given` (--lib-dir) is the only place looked at if it is not empty. The error says
// where they were looked for.
std::expected<std::string, std::string> find_drop_in_libraries(const std::string& given);

}  // namespace weir::command
