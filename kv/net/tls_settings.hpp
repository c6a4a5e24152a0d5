// A TLS configuration: certificate, key, and whether the other side must show a certificate. The server uses
// one towards its clients, and one where it is itself a client.
#pragma once

#include <asio/ssl/context.hpp>
#include <asio/ssl/stream_base.hpp>
#include <utility>

#include "kv/net/listener.hpp"
#include "transport/tls_context.hpp"

namespace weir::kv {

class TlsSettings {
 public:
  using Side = asio::ssl::stream_base::handshake_type;

  TlsSettings(Side side, transport::TlsContext context) : side_(side), context_(std::move(context)) {}

  asio::ssl::context& context() { return *context_; }
  Side side() const { return side_; }

 private:
  const Side side_;
  const transport::TlsContext context_;
};

}  // namespace weir::kv
