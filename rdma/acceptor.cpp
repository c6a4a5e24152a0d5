#include "rdma/acceptor.hpp"

namespace weir::rdma {

Result<Acceptor> Acceptor::listen(Engine& engine, const Endpoint& address, const AcceptorSettings& settings) {
  if (Result<void> good = check(settings.stream); !good) return std::unexpected(good.error());
  auto listener = Listener::open(
      engine, address,
      [&engine, stream = settings.stream]() -> Result<ConnectionLife*> {
        return engine.make_connection(ConnectionLife::Side::server, stream);
      },
      settings.backlog);
  if (!listener) return std::unexpected(listener.error());
  return Acceptor(engine, std::move(*listener));
}

}  // namespace weir::rdma
