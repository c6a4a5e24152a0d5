// TCP and unix sockets: non-blocking calls when epoll reports readiness, with nothing in between. A reply
// costs one epoll_wait (shared by all ready sockets), one recv and one send.
#pragma once

#include "cli/client/connection.hpp"

namespace weir::client {

Result<std::unique_ptr<Reactor>> make_socket_reactor();

}  // namespace weir::client
