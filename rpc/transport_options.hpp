// What transports need to know beyond an address: certificates, and the RDMA engine of the io_context.
#pragma once

#include <asio/io_context.hpp>
#include <memory>
#include <string>

#include "rpc/error.hpp"

namespace weir::rdma {
class Engine;
}

namespace weir::rpc {

// Files in PEM form; empty: none. A server needs certificate and key, and with `authority_file` it asks
// clients for a certificate that this authority vouches for. A client needs `authority_file`, or takes the
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
  // rdma:// without TLS: connections take their receives from those that all of an engine share, 16 MiB as it
  // comes, instead of 512 KiB each: for thousands of them of which few are busy (rdma/channel_settings.hpp).
  bool share_rdma_receives = false;
};

}  // namespace weir::rpc
