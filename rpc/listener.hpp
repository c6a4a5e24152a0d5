// The passive side: makes transports of the connections that arrive.
//
// A connection over TCP or a unix socket, with TLS or without, belongs to the io_context that `place` names
// for it, which may be another thread's: the transport is made there, and handed on there. One over RDMA
// belongs to the engine that it came in through, so to the listener's own.
//
// Ownership: closing or destroying it stops accepting; handshakes under way end without a transport.
// Threading: the io_context's thread.
#pragma once

#include <functional>
#include <memory>

#include "rpc/address.hpp"
#include "rpc/transport.hpp"
#include "rpc/transport_options.hpp"

namespace weir::rpc {

class Listener {
 public:
  // Runs in the thread of the io_context that the transport belongs to.
  using Accepted = std::function<void(asio::io_context&, TransportPtr)>;
  using Place = std::function<asio::io_context&()>;
  virtual ~Listener() = default;
  // With the port that the kernel chose where 0 was asked for.
  virtual Address address() const = 0;
};

// `accepted` may run for connections until the listener is destroyed; in other threads for those that were on
// their way there. A unix socket's file is removed with it.
Result<std::unique_ptr<Listener>> listen(asio::io_context& io, const Address& address,
                                         const TransportOptions& options, Listener::Place place,
                                         Listener::Accepted accepted);

// For listener.cpp.
Result<std::unique_ptr<Listener>> listen_rdma(asio::io_context& io, const Address& address,
                                              const TransportOptions& options, Listener::Accepted accepted);

}  // namespace weir::rpc
