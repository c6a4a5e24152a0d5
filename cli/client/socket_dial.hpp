// Connected, non-blocking stream sockets.
#pragma once

#include "cli/client/connection.hpp"
#include "cli/client/unique_fd.hpp"

namespace weir::client {

// TCP_NODELAY is set, and to this host it is not paced. Tries each address the name has; `limit` covers them
// all.
Result<UniqueFd> dial_tcp(const Endpoint&, Milliseconds limit);
Result<UniqueFd> dial_unix(const Endpoint&, Milliseconds limit);

}  // namespace weir::client
