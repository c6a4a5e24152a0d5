// What transports need besides an address: certificates, and the RDMA engine of the io_context.
#pragma once

#include <asio/io_context.hpp>
#include <memory>
#include <string>

#include "rpc/error.hpp"

namespace weir::rdma {
class Engine;
}

namespace weir::rpc {

// Files in PEM form; empty: none. A server needs certificate and key; if it has `authority_file` it asks
// clients for a certificate that this authority signed. A client needs `authority_file`, or takes the
// system's authorities, and shows a certificate if it has one.
struct TlsOptions {
  std::string certificate_file;
  std::string key_file;
  std::string authority_file;
  std::string server_name;  // that the server's certificate must be for; empty: the address's host
  bool check_server_name = true;
  bool check_certificate = true;  // a client that trusts anybody
};

struct TransportOptions {
  TlsOptions tls;
  // For rdma:// addresses: the engine of the io_context, which its owner opened (rdma/engine.hpp). Null:
  // opened at first use with the provider's defaults, and shared by all of this io_context.
  rdma::Engine* engine = nullptr;
  // rdma:// without TLS: connections take their receives from those that all connections of an engine share,
  // 16 MiB by default, instead of 512 KiB each. For thousands of connections of which few are busy
  // (rdma/channel_settings.hpp).
  bool share_rdma_receives = false;
};

}  // namespace weir::rpc
