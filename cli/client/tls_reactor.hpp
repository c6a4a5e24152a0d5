// TLS over TCP.
#pragma once

#include "cli/client/connection.hpp"

namespace weir::client {

std::unique_ptr<Reactor> make_tls_reactor();

}  // namespace weir::client
