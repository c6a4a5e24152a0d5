// The passive side: makes transports of the connections that arrive.
//
// Connections belong to the io_contexts that `threads` names, in turn: the transport is made in that thread,
// and handed on there. Over RDMA the engines of those threads take turns.
//
// Ownership: destroying it stops accepting; what it accepted before is handed on even so, TLS handshakes over
// TCP that are under way included. Threading: the io_context's thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "rpc/address.hpp"
#include "rpc/transport/transport.hpp"
#include "rpc/transport_options.hpp"

namespace weir::rpc {

class Listener {
 public:
  // Runs in the thread of the io_context that the transport belongs to.
  using Accepted = std::function<void(asio::io_context&, TransportPtr)>;
  // The listener's own among them; each runs in a thread of its own, and until the listener is gone.
  using Threads = std::vector<asio::io_context*>;
  virtual ~Listener() = default;
  // With the port that the kernel chose where 0 was asked for.
  virtual Address address() const = 0;
  // Listens no more. Connections whose clients believe, or are about to, that they are served are accepted
  // even so: those that the kernel has made already at once, those that RDMA is making when they are made.
  virtual void accept_rest() = 0;
};

// `accepted` may run for connections until the listener is destroyed, and for those that were on their way
// then. A unix socket's file is removed with it.
Result<std::unique_ptr<Listener>> listen(asio::io_context& io, const Address& address,
                                         const TransportOptions& options, const Listener::Threads& threads,
                                         Listener::Accepted accepted);

// For listener.cpp.
Result<std::unique_ptr<Listener>> listen_rdma(asio::io_context& io, const Address& address,
                                              const TransportOptions& options,
                                              const Listener::Threads& threads, Listener::Accepted accepted);

}  // namespace weir::rpc
