#include "cli/weir/metrics_server.hpp"

#include "metrics/page_server.hpp"

namespace weir::command {

std::string serve_metrics(const HostPort& where, const std::function<std::string()>& page,
                          const std::function<void(const std::string&)>& listening) {
  asio::io_context io(1);
  auto server = metrics::PageServer::listen(io, where.host, where.port, page);
  if (!server) return server.error();
  const std::string address = server->where();
  listening(address);
  std::error_code why;
  server->on_end([&](std::error_code error) {
    why = error;
    io.stop();
  });
  io.run();
  return "cannot accept connections on " + address + ": " + why.message();
}

}  // namespace weir::command
