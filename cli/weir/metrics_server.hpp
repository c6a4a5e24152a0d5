// Serves the Prometheus page of a command that does nothing else (metrics/page_server.hpp).
#pragma once

#include <functional>
#include <string>

#include "cli/weir/host_port.hpp"

namespace weir::command {

// Without a host, listens on all addresses; with port 0, on a free port. Serves in this thread until the
// process ends. Returns only on failure, with an error to print. `listening` gets the address.
std::string serve_metrics(const HostPort& where, const std::function<std::string()>& page,
                          const std::function<void(const std::string&)>& listening);

}  // namespace weir::command
