// What transports need besides an address: certificates, and the RDMA engine of the io_context.
#pragma once

#include <asio/io_context.hpp>
#include <memory>
#include <string>

#include "rdma/channel_settings.hpp"
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

// What rpc's connections over rdma:// take in place of the defaults of channels.
inline rdma::ChannelSettings rdma_channel_defaults() {
  rdma::ChannelSettings settings;
  settings.held_bytes = 4 << 20;
  return settings;
}

struct TransportOptions {
  TlsOptions tls;
  // For rdma:// addresses: the engine of the io_context, which its owner opened (rdma/engine.hpp). Null:
  // opened at first use with the provider's defaults, and shared by all of this io_context.
  rdma::Engine* engine = nullptr;
  // rdma:// without TLS: receives, blocks and times of a connection (rdma/channel_settings.hpp), such as
  //
  //   options.transport.rdma_channel.receive_blocks = 128;
  //   options.transport.rdma_channel.shared_receives = true;   // thousands of connections of which few are
  //   busy
  //
  // max_message_bytes and rendezvous_bytes are rpc's own, whatever stands here, and a client's
  // resolve_timeout is what is left of ConnectOptions::connect_timeout.
  rdma::ChannelSettings rdma_channel = rdma_channel_defaults();
};

}  // namespace weir::rpc
