// OpenSSL's settings for one end of TLS, made from the files that a user names. The same for TCP and for
// RDMA.
//
// TLS 1.2 is the oldest version. A server's connections release their buffers while they are idle. A
// connection keeps the context that it was made with; a context made from renewed files applies to new
// connections.
//
// Threading: once made, a context may be used by connections of any thread.
#pragma once

#include <asio/ssl/context.hpp>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>

#include "transport/tls_files.hpp"

namespace weir::transport {

enum class TlsSide : std::uint8_t { server, client };

// What could not be used. Callers report it in terms of their own options.
struct TlsFault {
  enum class Part : std::uint8_t {
    certificate,
    key,
    authorities,
    authorities_directory,
    ciphers,
    ciphersuites
  };
  Part part;
  std::string value;   // the file, directory or list
  std::string reason;  // OpenSSL's reason, or the system's
};

using TlsContext = std::shared_ptr<asio::ssl::context>;
std::expected<TlsContext, TlsFault> make_tls_context(TlsSide side, const TlsFiles& files);

}  // namespace weir::transport
