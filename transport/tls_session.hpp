// A TLS session over a non-blocking TCP socket, for connections that wait for the socket themselves and read
// straight into memory of their own. An asio::ssl::stream completes reads from a buffer; this has none.
//
// Each call does what is possible at once and says what it needs to go on. TLS may have to write before it
// can read, and the other way round. One write carries at most one record.
//
// Ownership: the socket stays the caller's, and outlives the session. Threading: one thread at a time.
#pragma once

#include <openssl/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/tls_context.hpp"

namespace weir::transport {

// What a call on a stream of bytes has done, and what it needs before the next can do more.
struct StreamStep {
  enum class Needs : std::uint8_t { nothing, readable, writable, over };
  std::size_t bytes = 0;
  Needs needs = Needs::nothing;
};

class TlsSession {
 public:
  // `server_name`: for a client, the host or address that the certificate must be for; empty: not checked.
  TlsSession(TlsContext context, TlsSide side, int socket, const std::string& server_name = {});
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Repeated until nothing is needed.
  StreamStep shake_hands();
  StreamStep read(std::span<std::byte> into);
  // The first bytes of `pieces`. Where none was taken, the next call begins with the same bytes.
  StreamStep write(std::span<const std::span<const std::byte>> pieces);
  // Input that was taken from the socket, so that waiting for the socket might wait for ever.
  bool holds_input() const;
  // The other end has shown a certificate that an authority of ours signed.
  bool is_peer_certified() const;
  // Why it is over; empty: the other end closed the connection.
  const std::string& why() const { return why_; }
  SSL* native_handle() const { return ssl_.get(); }

 private:
  void expect_name(const std::string& name);
  StreamStep step(int outcome, std::size_t bytes);

  const TlsContext context_;
  const int socket_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
  std::vector<std::byte> gathered_;  // small pieces for one record
  std::string why_;
};

}  // namespace weir::transport
