// Reading a log into the server's databases, at the start.
//
// Nothing expires by itself meanwhile: what had expired when the log was written is a DEL in it, and what has
// expired since goes when all is read. As with a snapshot `go_on` is called every few milliseconds; false
// stops.
#pragma once

#include <expected>
#include <functional>
#include <string>

#include "kv/persistence/loading.hpp"

namespace weir::kv::aof {

class LogFiles;

// The databases are empty. If the last file ends in the middle of a request and aof-load-truncated allows it,
// it is cut there. The error names the file and says what is wrong; what was read until then stays.
std::expected<LoadResult, std::string> load_log(Server& server, LogFiles& files,
                                                const std::function<bool()>& go_on);

}  // namespace weir::kv::aof
