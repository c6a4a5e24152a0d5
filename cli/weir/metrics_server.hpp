// The page for Prometheus of a command that does nothing else (metrics/page_server.hpp).
#pragma once

#include <functional>
#include <string>

#include "cli/weir/host_port.hpp"

namespace weir::command {

// No host: every address. Port 0: a free one. Serves until the process ends, in this thread. Returns only
// with an error, fit to print. `listening` is told where it listens.
std::string serve_metrics(const HostPort& where, const std::function<std::string()>& page,
                          const std::function<void(const std::string&)>& listening);

}  // namespace weir::command
