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

// Makes the page anew at most once a second. INFO takes time for each client, and readers need no password,
// so they must not make the server spend it as often as they like. The server must outlive it.
class MetricsPage {
 public:
  static constexpr std::int64_t keep_ms = 1000;

  explicit MetricsPage(const Server& server) : server_(server) {}

  // Valid until the next call.
  const std::string& at(std::int64_t now_ms);

 private:
  const Server& server_;
  std::string page_;  // empty: none yet
  std::int64_t made_ms_ = 0;
};

// Serves the page on that address to anybody, without a password: it shows counts, but no data. The server
// must outlive the listener.
OpenedListener listen_metrics(Server&, const std::string& address, std::uint16_t port);

}  // namespace weir::kv
