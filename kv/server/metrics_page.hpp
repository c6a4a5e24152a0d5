// What Prometheus reads of this server: `metrics-port`.
//
// The metrics are INFO's fields under the names that redis_exporter gives them, so dashboards and alerts made
// for that show this server without a second process. What Weir alone has begins with weir_server_. Reading
// the page counts as no command and changes nothing.
#pragma once

#include <cstdint>
#include <string>

#include "kv/net/listener.hpp"

namespace weir::kv {

class Server;

std::string metrics_page(const Server&);

// Serves it on that address to anybody who reaches it, without a password: it shows counts, and no data. The
// server outlives the listener.
OpenedListener listen_metrics(Server&, const std::string& address, std::uint16_t port);

}  // namespace weir::kv
