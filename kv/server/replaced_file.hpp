// A small file whose contents are replaced as a whole: whoever looks, whenever the machine stops, sees the
// old ones or the new ones.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace weir::kv {

// The file keeps its permissions; a new one is its owner's alone. The error is a reason and names the file as
// `what`: "the ACL file".
std::expected<void, std::string> replace_file(const std::string& path, std::string_view text,
                                              const std::string& what);

}  // namespace weir::kv
