#include "tensor/link/tcp_listener.hpp"

#include <chrono>
#include <utility>

#include "transport/waiting_client.hpp"

namespace weir::tensor {

using asio::ip::tcp;
using transport::Newcomers;

namespace {
constexpr std::chrono::milliseconds no_descriptors{100};  // pause before accepting again
}

Result<std::unique_ptr<TcpListener>> TcpListener::open(asio::io_context& io, const tcp::endpoint& at,
                                                       transport::TlsContext tls, std::uint64_t generation,
                                                       std::uint32_t most, Taken taken) {
  tcp::acceptor acceptor(io);
  std::error_code failed;
  acceptor.open(at.protocol(), failed);
  if (!failed) acceptor.set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor.bind(at, failed);
  if (!failed) acceptor.listen(asio::socket_base::max_listen_connections, failed);
  if (failed) return fail(Errc::unreachable, "tcp://" + rdma::text(at) + ": " + failed.message());
  std::unique_ptr<TcpListener> listener(
      new TcpListener(std::move(acceptor), std::move(tls), generation, most, std::move(taken)));
  listener->accept();
  return listener;
}

TcpListener::TcpListener(tcp::acceptor acceptor, transport::TlsContext tls, std::uint64_t generation,
                         std::uint32_t most, Taken taken)
    : acceptor_(std::move(acceptor)),
      again_(acceptor_.get_executor()),
      pacing_(acceptor_.native_handle()),
      local_(acceptor_.local_endpoint()),
      tls_(std::move(tls)),
      generation_(generation),
      most_(most),
      taken_(std::move(taken)) {}

void TcpListener::accept() {
  acceptor_.async_accept([this, alive = alive_](std::error_code failed, tcp::socket socket) {
    if (!*alive || failed == asio::error::operation_aborted) return;
    if (!failed) {
      take(std::move(socket));
      return accept();
    }
    const bool no_descriptor = failed == asio::error::no_descriptors;
    if (no_descriptor && transport::client_waits(acceptor_.native_handle()) &&
        newcomers_->make_room(Newcomers::Lack::descriptor) == Newcomers::Room::now)
      return accept();
    // Without free descriptors accept would fail again at once.
    accept_after(no_descriptors);
  });
}

void TcpListener::accept_after(std::chrono::milliseconds pause) {
  again_.expires_after(pause);
  again_.async_wait([this, alive = alive_](std::error_code stopped) {
    if (*alive && !stopped) accept();
  });
}

void TcpListener::take(tcp::socket socket) {
  const bool full = static_cast<std::uint64_t>(open_links_.use_count()) > most_;
  if (full && newcomers_->make_room(Newcomers::Lack::place) == Newcomers::Room::none) return;
  if (tls_ != nullptr && !handshakes_->has_room()) return;
  pacing_.accepted(socket.native_handle());
  const auto on_up = [this, alive = alive_](TcpLink& link) {
    if (*alive)
      taken_(link);
    else
      link.leave();
  };
  TcpLink::Place place{open_links_, newcomers_, {.context = tls_}};
  if (tls_ != nullptr) place.encryption.place = handshakes_->take();
  TcpLink::accept(std::move(socket), generation_, std::move(place), on_up);
}

}  // namespace weir::tensor
