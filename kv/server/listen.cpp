// Listening: the one place that knows both the server and the page for Prometheus.
#include "kv/server/metrics_page.hpp"
#include "kv/server/server.hpp"

namespace weir::kv {

std::expected<void, std::string> Server::listen() {
  // The users must be known before anybody can connect.
  if (auto users = access.load_configured(); !users) return users;
  return listeners.open_all([this](const std::string& address, std::uint16_t port) {
    return listen_metrics(*this, address, port);
  });
}

}  // namespace weir::kv
