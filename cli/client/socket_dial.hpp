// Opens connected, non-blocking stream sockets.
#pragma once

#include "cli/client/connection.hpp"
#include "transport/owned_fd.hpp"

namespace weir::client {

// Sets TCP_NODELAY, and does not pace connections to this host. Tries each address of the name;
// `limit` covers all of them.
Result<OwnedFd> dial_tcp(const Endpoint&, Milliseconds limit);
Result<OwnedFd> dial_unix(const Endpoint&, Milliseconds limit);

}  // namespace weir::client
