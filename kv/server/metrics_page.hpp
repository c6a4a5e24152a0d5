// The page that Prometheus reads from this server: `metrics-port`.
//
// The metrics are INFO's fields under redis_exporter's names, so dashboards and alerts made for that work
// without a second process. Names of Weir's own metrics begin with weir_server_. Reading the page changes
// nothing and does not count as a command.
#pragma once

#include <cstdint>
#include <string>

#include "kv/net/listener.hpp"

namespace weir::kv {

class Server;

std::string metrics_page(const Server&);

// Serves the page on that address to anybody, without a password: it shows counts, but no data. The server
// must outlive the listener.
OpenedListener listen_metrics(Server&, const std::string& address, std::uint16_t port);

}  // namespace weir::kv
