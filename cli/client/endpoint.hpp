// Where a server is and how to reach it: a value made from options or a URI.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/client/error.hpp"
#include "transport/kind.hpp"
#include "transport/tls_files.hpp"

namespace weir::client {

using Transport = transport::Kind;
using transport::is_rdma;
using transport::is_tls;
using transport::name_of;
Result<Transport> transport_named(std::string_view name);

struct TlsSettings {
  // Without authorities: the system's. The certificate is that of this client, if the server asks for one.
  transport::TlsFiles files{.system_authorities = true, .asks_for_password = true};
  std::string server_name;  // for SNI, and the name to verify, if given

  bool verify() const { return files.peer != transport::PeerCertificate::ignored; }
};

struct RdmaSettings {
  std::string provider;              // auto (or empty), weir, system: which libibverbs (rdma/provider.hpp)
  std::string library_path;          // LD_LIBRARY_PATH as seen by main
  std::uint32_t rx_bytes = 1 << 20;  // largest receive buffer of a connection (rdma/settings.hpp)
};

struct Endpoint {
  Transport transport = Transport::tcp;
  std::string host = "127.0.0.1";
  std::uint16_t port = 6379;
  std::string path;  // of a unix socket
  TlsSettings tls;
  RdmaSettings rdma;
};

// For a prompt: 127.0.0.1:6379, [::1]:6379, or the socket's path.
std::string address_of(const Endpoint&);

// The content of a URI. Its scheme chooses the transport: redis, valkey, weir (TCP); rediss, valkeys, weirs
// (TLS); rdma, rdma+tls; unix (path).
struct Uri {
  Endpoint endpoint;
  std::string user;
  std::string password;
  int database = 0;
};
Result<Uri> parse_uri(std::string_view text, Endpoint defaults = {});

}  // namespace weir::client
