// Accepts TCP connections for a hub. Their number is limited, counting those that have not sent a greeting
// yet. Beyond the limit, or without descriptors, one whose peer has asked for nothing leaves for each that
// comes (transport/newcomers.hpp); if there is none, the one that comes is closed at once. With TLS, at most
// 128 handshakes are under way (transport/handshake_places.hpp). Threading: the io_context's thread.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "tensor/link/tcp_link.hpp"
#include "transport/tcp_pacing.hpp"

namespace weir::tensor {

class TcpListener {
 public:
  using Taken = std::function<void(TcpLink&)>;

  // `tls`: none without a context. `taken` is called for each peer that has sent a greeting. unreachable: the
  // address is in use or not ours.
  static Result<std::unique_ptr<TcpListener>> open(asio::io_context& io, const asio::ip::tcp::endpoint& at,
                                                   transport::TlsContext tls, std::uint64_t generation,
                                                   std::uint32_t most, Taken taken);
  ~TcpListener() { *alive_ = false; }
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  asio::ip::tcp::endpoint local() const { return local_; }

 private:
  TcpListener(asio::ip::tcp::acceptor acceptor, transport::TlsContext tls, std::uint64_t generation,
              std::uint32_t most, Taken taken);
  void accept();
  void accept_after(std::chrono::milliseconds pause);
  void take(asio::ip::tcp::socket socket);

  asio::ip::tcp::acceptor acceptor_;
  asio::steady_timer again_;
  const transport::AcceptedPacing pacing_;
  const asio::ip::tcp::endpoint local_;
  const transport::TlsContext tls_;
  const std::shared_ptr<transport::HandshakePlaces> handshakes_ =
      std::make_shared<transport::HandshakePlaces>();
  const std::uint64_t generation_;
  const std::uint32_t most_;
  const Taken taken_;
  // Set to false when the listener goes; handlers that are still pending check it.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::shared_ptr<void> open_links_ = std::make_shared<char>();  // one reference for each link, and this
  const std::shared_ptr<transport::Newcomers> newcomers_ = std::make_shared<transport::Newcomers>();
};

}  // namespace weir::tensor
