// Chooses the loop and the streams of a transport; no other code knows all of them.
#include "cli/client/connection.hpp"
#include "cli/client/rdma_reactor.hpp"
#include "cli/client/socket_reactor.hpp"
#include "cli/client/tls_reactor.hpp"

namespace weir::client {

Result<std::unique_ptr<Reactor>> Reactor::for_transport(Transport transport) {
  switch (transport) {
    case Transport::tcp:
    case Transport::unix_socket:
      return make_socket_reactor();
    case Transport::tls:
      return make_tls_reactor();
    case Transport::rdma:
    case Transport::rdma_tls:
      return make_rdma_reactor();
  }
  return fail(ErrorKind::usage, "no such transport");
}

}  // namespace weir::client
