#include "rdma/acceptor.hpp"

namespace weir::rdma {

Result<Acceptor> Acceptor::listen(Engine& engine, const Endpoint& address, const AcceptorSettings& settings) {
  if (Result<void> good = check(settings.stream); !good) return std::unexpected(good.error());
  Result<CmId> id = engine.make_id();
  if (!id) return std::unexpected(id.error());
  if (Result<void> bound = id->bind(address); !bound) return std::unexpected(bound.error());
  auto listener = std::make_unique<Listener>(
      engine, std::move(*id),
      [&engine, stream = settings.stream]() -> Result<ConnectionLife*> {
        return engine.make_connection(ConnectionLife::Side::server, stream);
      },
      settings.backlog);
  // The listener owns the identifier before requests can come.
  if (Result<void> listening = listener->start(); !listening) return std::unexpected(listening.error());
  return Acceptor(engine, std::move(listener));
}

}  // namespace weir::rdma
