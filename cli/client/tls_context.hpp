// OpenSSL's settings for one server, made from TlsSettings; the same for TCP and RDMA.
#pragma once

#include "cli/client/endpoint.hpp"
#include "cli/client/error.hpp"
#include "transport/tls_context.hpp"

namespace weir::client {

// Caches the last context: a load generator opens many connections to one server.
class TlsContextSource {
 public:
  Result<transport::TlsContext> context_for(const TlsSettings&);

 private:
  transport::TlsFiles files_;
  transport::TlsContext context_;
};

// Sets SNI and the name to verify; call before the handshake.
Result<void> name_server(SSL*, const TlsSettings&);

// Why a handshake failed, and what to do about it.
Error handshake_error(const Endpoint&, SSL*, std::error_code);

}  // namespace weir::client
