// Replaces a small file as a whole: a reader sees the old or the new contents, even if the
// machine stops at any moment.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace weir::kv {

// The file keeps its permissions; only its owner can use a new file. The error is a reason and calls the
// file `what`: "the ACL file".
std::expected<void, std::string> replace_file(const std::string& path, std::string_view text,
                                              const std::string& what);

}  // namespace weir::kv
