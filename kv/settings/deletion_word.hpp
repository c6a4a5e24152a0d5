// The command by which replicas and the log are told that a key is gone for which nobody said DEL or UNLINK
// themselves: the settings lazyfree-lazy-... of Redis choose. This server frees what is large a little at a
// time either way; a redis-server that follows it does so for UNLINK only.
#pragma once

#include <string_view>

namespace weir::kv {

constexpr std::string_view deletion_word(bool lazily) { return lazily ? "UNLINK" : "DEL"; }

}  // namespace weir::kv
