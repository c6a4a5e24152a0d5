// The server's TLS configuration: certificate, key, and whether clients must show a certificate.
#pragma once

#include <asio/ssl/context.hpp>
#include <memory>

#include "kv/net/listener.hpp"

namespace weir::kv {

class TlsSettings {
 public:
  asio::ssl::context& context() { return context_; }

  // Applies the files; the error names the file and what OpenSSL says of it.
  static Opened<std::shared_ptr<TlsSettings>> load(const TlsFiles& files);

 private:
  asio::ssl::context context_{asio::ssl::context::tls_server};
};

}  // namespace weir::kv
