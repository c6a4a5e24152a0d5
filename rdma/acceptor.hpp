// Listens for RDMA connections and hands them out as streams, as the protocol's server.
#pragma once

#include "rdma/engine/basic_acceptor.hpp"
#include "rdma/stream.hpp"

namespace weir::rdma {

struct AcceptorSettings {
  StreamSettings stream;
  std::uint32_t backlog = 511;  // connections that nobody has accepted yet; more are rejected
};

class Acceptor : public BasicAcceptor<Stream, Connection> {
 public:
  // Port 0 takes a free port; an IPv6 address listens for IPv6 only.
  static Result<Acceptor> listen(Engine& engine, const Endpoint& address,
                                 const AcceptorSettings& settings = {});

  // Takes turns receiving connections with the acceptor that gave the seat, which must be of the same kind.
  static Result<Acceptor> sit(std::shared_ptr<Seat> seat, const AcceptorSettings& settings = {});

 private:
  Acceptor(Engine& engine, std::shared_ptr<Arrivals> arrivals, std::unique_ptr<Listener> listener)
      : BasicAcceptor(engine, std::move(arrivals), std::move(listener)) {}
  Acceptor(std::shared_ptr<Seat> seat, std::shared_ptr<Arrivals> arrivals)
      : BasicAcceptor(std::move(seat), std::move(arrivals)) {}
};

}  // namespace weir::rdma
