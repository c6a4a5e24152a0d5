// A TLS configuration: certificate, key, and whether the other side must show a certificate. It is that of
// the server towards its clients, or of the server as somebody's client.
#pragma once

#include <asio/ssl/context.hpp>
#include <asio/ssl/stream_base.hpp>
#include <memory>

#include "kv/net/listener.hpp"

namespace weir::kv {

class TlsSettings {
 public:
  asio::ssl::context& context() { return context_; }

  using Side = asio::ssl::stream_base::handshake_type;
  Side side() const { return side_; }

  // Applies the files; the error names the file and what OpenSSL says of it.
  static Opened<std::shared_ptr<TlsSettings>> load(const TlsFiles& files);
  static Opened<std::shared_ptr<TlsSettings>> load_to_dial(const TlsFiles& files);

 private:
  explicit TlsSettings(Side side);
  Opened<void> use(const TlsFiles& files);

  const Side side_;
  asio::ssl::context context_;
};

}  // namespace weir::kv
