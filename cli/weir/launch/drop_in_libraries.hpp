// Finds Weir's libibverbs.so.1 and librdmacm.so.1: beside this program in a build tree, and below
// lib/weir once installed.
#pragma once

#include <expected>
#include <string>

namespace weir::command {

// A directory with both libraries. If `given` (--lib-dir) is not empty, no other place is searched. The error
// lists the places that were searched.
std::expected<std::string, std::string> find_drop_in_libraries(const std::string& given);

}  // namespace weir::command
