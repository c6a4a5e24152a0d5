// TLS as a transport, over TCP and over RDMA.
//
// Ownership: a context may go while connections made from it live. Threading: the io_context's thread.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <chrono>

#include "rdma/stream.hpp"
#include "rpc/transport/transport.hpp"
#include "rpc/transport_options.hpp"
#include "transport/handshake_places.hpp"
#include "transport/tls_context.hpp"

namespace weir::rpc {

using transport::TlsSide;
// The error names the file and what OpenSSL says of it.
Result<transport::TlsContext> make_tls_context(const TlsOptions& options, TlsSide side);

struct TlsPeer {
  TlsSide side = TlsSide::client;
  transport::TlsContext context;
  std::string server_name = {};  // a client's: what the certificate must be for; empty: not checked
  std::chrono::milliseconds timeout{10'000};
  // A server's: the handshake's place, which it may have to leave, and the address that it is charged to.
  std::shared_ptr<transport::HandshakePlaces::Place> place = nullptr;
  std::string from = {};
};

// Shakes hands; `peer` is what Transport::peer() says.
asio::awaitable<Result<TransportPtr>> make_tls_transport(asio::ip::tcp::socket socket, TlsPeer tls,
                                                         std::string peer);
asio::awaitable<Result<TransportPtr>> make_tls_transport(rdma::Stream stream, TlsPeer tls, std::string peer);

}  // namespace weir::rpc
