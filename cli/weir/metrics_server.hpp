// A web server of one page, for Prometheus: GET /metrics.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "cli/weir/host_port.hpp"

namespace weir::command {

// What clients that are silent or slow can take of it. Beyond `connections` new ones wait in the kernel until
// one ends, which takes `patience` at most.
struct MetricsLimits {
  std::size_t connections = 64;
  std::chrono::milliseconds patience{5000};
};

// No host: every address. Port 0: a free one. Serves until the process ends, in this thread; no client waits
// for another. Returns only with an error, fit to print. `listening` is told where it listens.
std::string serve_metrics(const HostPort& where, const std::function<std::string()>& page,
                          const std::function<void(const std::string&)>& listening,
                          const MetricsLimits& limits = {});

}  // namespace weir::command
