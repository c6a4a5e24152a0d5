// Carries bytes to a server and back over any of the five transports. Attackers send through it,
// and RESP clients use it.
//
// Threading: the io_context's thread. A line lives no longer than its io_context.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "rdma/engine.hpp"

namespace weir::bystander {

// The server's protocol. Over rdma:// without TLS, RPC uses a Channel, and RESP a Stream.
enum class Protocol { resp, rpc };
// Whether a line to a TLS address shakes hands, or leaves the handshake's bytes to the caller. Slowly: with a
// pause before each step.
enum class Tls { shake_hands, slowly, leave_out };

class Line {
 public:
  virtual ~Line() = default;
  // Returns false once the line has ended.
  virtual asio::awaitable<bool> write(std::string bytes) = 0;
  // Returns what has arrived, at least one byte; empty: the line has ended.
  virtual asio::awaitable<std::string> read() = 0;
};
using LinePtr = std::unique_ptr<Line>;

// The software NIC's engine for this io_context, opened at first use. Throws.
rdma::Engine& engine_of(asio::io_context& io);

// `address` as in rpc/address.hpp. The server's certificate is not checked. `from` is an address of this host
// from which to come, over TCP; null: any. It lives as long as the call. A null line: no connection.
asio::awaitable<LinePtr> dial(asio::io_context& io, Protocol protocol, std::string address,
                              Tls tls = Tls::shake_hands, const char* from = nullptr);

}  // namespace weir::bystander
