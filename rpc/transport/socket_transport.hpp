// TCP and unix sockets: one recv and one sendmsg a round, on the poller.
#pragma once

#include <string>

#include "rpc/transport/poller.hpp"
#include "rpc/transport/transport.hpp"
#include "transport/owned_fd.hpp"

namespace weir::rpc {

// `fd` is connected and does not block. `peer` is what Transport::peer() says.
TransportPtr make_socket_transport(asio::io_context& io, OwnedFd fd, std::string peer);

}  // namespace weir::rpc
