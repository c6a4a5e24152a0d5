#include "rpc/pool/known_server.hpp"

namespace weir::rpc {

std::uint32_t KnownServer::in_flight() const {
  std::uint32_t sum = 0;
  for (const PooledConnection& one : connections) sum += one.client->in_flight();
  return sum;
}

PooledConnection* KnownServer::best() {
  PooledConnection* best = nullptr;
  for (PooledConnection& one : connections)
    if (one.client->is_open() && !one.client->draining() &&
        (best == nullptr || one.client->in_flight() < best->client->in_flight()))
      best = &one;
  return best;
}

void KnownServer::forget_ended() {
  std::erase_if(connections, [](const PooledConnection& one) { return !one.client->is_open(); });
}

PooledServer KnownServer::report() const {
  PooledServer server;
  server.address = address;
  server.connections = static_cast<std::uint32_t>(connections.size());
  server.in_flight = in_flight();
  server.calls = calls;
  server.failed_calls = failed_calls;
  server.ejected = record.ejected();
  server.failures = failures;
  if (!well()) server.last_error = last_error.what;
  if (!connections.empty()) server.transport = connections.front().client->transport_name();
  return server;
}

}  // namespace weir::rpc
