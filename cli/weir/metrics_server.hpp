// A web server of one page, for Prometheus: GET /metrics.
#pragma once

#include <expected>
#include <functional>
#include <string>

namespace weir::command {

// "host:port", "[::1]:port" or ":port" (every address). Serves until the process ends; one request at a time,
// each cut off after a few seconds. Returns only with an error, fit to print. `listening` is told where it
// listens.
std::string serve_metrics(const std::string& where, const std::function<std::string()>& page,
                          const std::function<void(const std::string&)>& listening);

}  // namespace weir::command
