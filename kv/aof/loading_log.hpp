// Reads a log into the server's databases at the start.
//
// Nothing expires by itself meanwhile: for a key that had expired when the log was written, the log has a
// DEL, and keys that expired since are removed at the end. As with a snapshot, `go_on` is called every few
// milliseconds; returning false stops.
#pragma once

#include <expected>
#include <functional>
#include <string>

#include "kv/persistence/loading.hpp"

namespace weir::kv::aof {

class LogFiles;

// The databases must be empty. If the last file ends in the middle of a request and aof-load-truncated allows
// it, the file is cut there. The error names the file and the problem; what was read until then stays.
std::expected<LoadResult, std::string> load_log(ServerParts& server, LogFiles& files,
                                                const std::function<bool()>& go_on);

}  // namespace weir::kv::aof
