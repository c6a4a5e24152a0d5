// The bytes of one TCP connection, in the clear or inside TLS. Nothing blocks; the owner waits for the
// socket.
//
// Threading: the io_context's thread.
#pragma once

#include <asio/ip/tcp.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "transport/handshake_places.hpp"
#include "transport/handshake_progress.hpp"
#include "transport/tls_session.hpp"

namespace weir::tensor {

// TLS for a connection; without a context there is none.
struct Encryption {
  transport::TlsContext context = {};
  std::string server_name = {};  // a peer's: what the hub's certificate must be for
  // A hub's: the handshake's place, which it may have to leave.
  transport::HandshakePlaces::Place place = {};
};

class TcpBytes {
 public:
  using Step = transport::StreamStep;
  using Socket = asio::ip::tcp::socket;

  explicit TcpBytes(Socket socket) : socket_(std::move(socket)) {}

  Socket& socket() { return socket_; }
  void encrypt(transport::TlsSide side, Encryption how);
  bool is_encrypted() const { return session_.has_value(); }
  // The handshake may have to end for that of another client from now on.
  void may_leave(std::string_view address, transport::Newcomers::Leave leave);

  Step shake_hands();
  Step read(std::span<std::byte> into);
  Step write(std::span<const std::span<const std::byte>> pieces);
  // Whether input was taken from the socket already, so that there may be more without waiting for it.
  bool holds_input() const { return session_ && session_->holds_input(); }
  bool is_peer_certified() const { return session_ && session_->is_peer_certified(); }
  // `work` runs when the socket may do what a step needs; not after close().
  template <class Work>
  void when_it_may(Step::Needs needs, Work work) {
    socket_.async_wait(needs == Step::Needs::writable ? Socket::wait_write : Socket::wait_read,
                       [work = std::move(work)](std::error_code error) {
                         if (!error) work();
                       });
  }
  // Why TLS ended the connection; empty: it did not.
  std::string_view why() const { return session_ ? std::string_view(session_->why()) : std::string_view(); }
  void close();

 private:
  void handshake_is_over();

  Socket socket_;
  transport::HandshakePlaces::Place place_;
  std::optional<transport::TlsSession> session_;
  std::optional<transport::HandshakeProgress> progress_;  // of a hub's handshake
};

}  // namespace weir::tensor
