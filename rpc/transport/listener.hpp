// The passive side: makes transports of the connections that arrive.
//
// Connections are assigned in turn to the io_contexts that `threads` names: the transport is made in that
// thread, and handed on there. Over RDMA the engines of those threads take turns.
//
// Ownership: destroying it stops accepting; connections accepted before are still handed on, including those
// whose TLS handshake over TCP is under way. Threading: the io_context's thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "rpc/address.hpp"
#include "rpc/transport/current_tls.hpp"
#include "rpc/transport/transport.hpp"
#include "rpc/transport_options.hpp"
#include "transport/newcomers.hpp"

namespace weir::rpc {

class Listener {
 public:
  // Runs in the thread of the io_context that the transport belongs to.
  using Accepted = std::function<void(asio::io_context&, TransportPtr)>;
  // The listener's own io_context among them; each runs in a thread of its own until the listener is gone.
  using Threads = std::vector<asio::io_context*>;
  virtual ~Listener() = default;
  // The address, with the port that the kernel chose if 0 was given.
  virtual Address address() const = 0;
  // Stops listening, but still accepts connections whose clients believe, or are about to believe, that they
  // are served: at once those that the kernel has already made, and those that RDMA is making once they are
  // made.
  virtual void accept_rest() = 0;
};

// `accepted` may run for connections until the listener is destroyed, and after that for those that were
// being made at that time. `tls`: for addresses that need it; each connection begins with the certificates
// that it has at that time. A unix socket's file is removed with the listener. When there are no descriptors,
// one of `newcomers` makes room.
Result<std::unique_ptr<Listener>> listen(asio::io_context& io, const Address& address,
                                         const TransportOptions& options,
                                         std::shared_ptr<const CurrentTls> tls,
                                         const Listener::Threads& threads, Listener::Accepted accepted,
                                         std::shared_ptr<transport::Newcomers> newcomers);

// For listener.cpp.
Result<std::unique_ptr<Listener>> listen_rdma(asio::io_context& io, const Address& address,
                                              const TransportOptions& options,
                                              std::shared_ptr<const CurrentTls> tls,
                                              const Listener::Threads& threads, Listener::Accepted accepted);

}  // namespace weir::rpc
