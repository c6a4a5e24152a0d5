// The passive side: makes transports of the connections that arrive.
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
  using Accepted = std::function<void(TransportPtr)>;
  virtual ~Listener() = default;
  // With the port that the kernel chose where 0 was asked for.
  virtual Address address() const = 0;
};

// `accepted` may run for connections until the listener is destroyed. A unix socket's file is removed with
// it.
Result<std::unique_ptr<Listener>> listen(asio::io_context& io, const Address& address,
                                         const TransportOptions& options, Listener::Accepted accepted);

// For listener.cpp.
Result<std::unique_ptr<Listener>> listen_rdma(asio::io_context& io, const Address& address,
                                              const TransportOptions& options, Listener::Accepted accepted);

}  // namespace weir::rpc
