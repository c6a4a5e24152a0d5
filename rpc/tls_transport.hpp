// TLS as a transport, over TCP and over RDMA.
//
// Ownership: a context may go while connections made from it live. Threading: the io_context's thread.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ssl/context.hpp>
#include <chrono>

#include "rdma/stream.hpp"
#include "rpc/transport.hpp"
#include "rpc/transport_options.hpp"

namespace weir::rpc {

enum class TlsSide { client, server };
// The error names the file and what OpenSSL says of it.
Result<std::shared_ptr<asio::ssl::context>> make_tls_context(const TlsOptions& options, TlsSide side);

struct TlsPeer {
  TlsSide side = TlsSide::client;
  std::shared_ptr<asio::ssl::context> context;
  std::string server_name;  // a client's: what the certificate must be for; empty: not checked
  std::chrono::milliseconds timeout{10'000};
};

// Shakes hands; `peer` is what Transport::peer() says.
asio::awaitable<Result<TransportPtr>> make_tls_transport(asio::ip::tcp::socket socket, TlsPeer tls,
                                                         std::string peer);
asio::awaitable<Result<TransportPtr>> make_tls_transport(rdma::Stream stream, TlsPeer tls, std::string peer);

}  // namespace weir::rpc
