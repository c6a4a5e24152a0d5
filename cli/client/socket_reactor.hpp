// TCP and unix sockets: non-blocking calls on epoll readiness, and nothing between them and the caller. A
// reply costs one epoll_wait (shared by all that are ready), one recv and one send.
#pragma once

#include "cli/client/connection.hpp"

namespace weir::client {

Result<std::unique_ptr<Reactor>> make_socket_reactor();

}  // namespace weir::client
