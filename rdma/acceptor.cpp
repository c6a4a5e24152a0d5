#include "rdma/acceptor.hpp"

namespace weir::rdma {

namespace {
std::shared_ptr<Arrivals> make_arrivals(Engine& engine, const AcceptorSettings& settings) {
  return std::make_shared<Arrivals>(
      engine,
      [&engine, stream = settings.stream]() -> Result<ConnectionLife*> {
        return Connection::make(engine, ConnectionLife::Side::server, stream);
      },
      settings.backlog);
}
}  // namespace

Result<Acceptor> Acceptor::listen(Engine& engine, const Endpoint& address, const AcceptorSettings& settings) {
  if (Result<void> good = check(settings.stream); !good) return std::unexpected(good.error());
  auto arrivals = make_arrivals(engine, settings);
  auto listener = Listener::open(engine, address, arrivals);
  if (!listener) return std::unexpected(listener.error());
  return Acceptor(engine, std::move(arrivals), std::move(*listener));
}

Result<Acceptor> Acceptor::sit(std::shared_ptr<Seat> seat, const AcceptorSettings& settings) {
  if (Result<void> good = check(settings.stream); !good) return std::unexpected(good.error());
  auto arrivals = make_arrivals(seat->engine, settings);
  return Acceptor(std::move(seat), std::move(arrivals));
}

}  // namespace weir::rdma
