// Connected, non-blocking stream sockets.
#pragma once

#include "cli/client/connection.hpp"
#include "transport/owned_fd.hpp"

namespace weir::client {

// TCP_NODELAY is set, and to this host it is not paced. Tries each address the name has; `limit` covers them
// all.
Result<OwnedFd> dial_tcp(const Endpoint&, Milliseconds limit);
Result<OwnedFd> dial_unix(const Endpoint&, Milliseconds limit);

}  // namespace weir::client
