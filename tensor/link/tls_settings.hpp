// The files of one end of tls:// connections, in PEM form; empty: none. They are read when the hub or peer
// opens.
#pragma once

#include <string>

#include "tensor/error.hpp"
#include "transport/tls_context.hpp"

namespace weir::tensor {

struct TlsSettings {
  std::string certificate = {};  // this end's; a hub needs one, and its key
  std::string key = {};
  // Who may sign the other end's certificate. A hub that names one asks for certificates, and serves the
  // peers that have one like those of its own host. A peer without one believes the system's authorities.
  std::string authority = {};
  std::string server_name = {};  // a peer: what the hub's certificate must be for; empty: the address's host
};

// bad_address: a file is missing or cannot be used.
Result<transport::TlsContext> tls_context_of(const TlsSettings& settings, transport::TlsSide side);

}  // namespace weir::tensor
