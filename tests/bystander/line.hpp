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

// What the server speaks. Over rdma:// without TLS, RPC goes through a Channel, and RESP through a Stream.
enum class Protocol { resp, rpc };
// What a line to a TLS address does: shake hands, or leave the bytes of the handshake to the caller.
enum class Tls { shake_hands, leave_out };

class Line {
 public:
  virtual ~Line() = default;
  // False: the line has ended.
  virtual asio::awaitable<bool> write(std::string bytes) = 0;
  // What has arrived, at least one byte; empty: the line has ended.
  virtual asio::awaitable<std::string> read() = 0;
};
using LinePtr = std::unique_ptr<Line>;

// The software NIC's engine of this io_context, opened at first use. Throws.
rdma::Engine& engine_of(asio::io_context& io);

// `address` as rpc/address.hpp has it. Nobody checks the server's certificate. Null: no connection.
asio::awaitable<LinePtr> dial(asio::io_context& io, Protocol protocol, std::string address,
                              Tls tls = Tls::shake_hands);

}  // namespace weir::bystander
