// OpenSSL's settings for one server, made from TlsSettings; the same over TCP and over RDMA.
#pragma once

#include "cli/client/endpoint.hpp"
#include "cli/client/error.hpp"
#include "transport/tls_context.hpp"

namespace weir::client {

// Keeps the context it made last: a load generator opens many connections to one server.
class TlsContextSource {
 public:
  Result<transport::TlsContext> context_for(const TlsSettings&);

 private:
  transport::TlsFiles files_;
  transport::TlsContext context_;
};

// SNI and the name to check, before the handshake.
Result<void> name_server(SSL*, const TlsSettings&);

// Why a handshake failed, with what to do about it.
Error handshake_error(const Endpoint&, SSL*, std::error_code);

}  // namespace weir::client
