// The connection type "tls": TLS on TCP.
#include <asio/ip/tcp.hpp>

#include "kv/net/socket_listener.hpp"
#include "kv/net/tls_connection.hpp"

namespace weir::kv {

OpenedListener listen_tls(SocketPoller& poller, asio::io_context& io, CurrentTls tls,
                          const std::shared_ptr<transport::HandshakePlaces>& places,
                          const std::string& address, std::uint16_t port, const SocketOptions& options,
                          Accept accept, std::function<void()> after_input, Log log) {
  auto bound = bind_tcp(address, port, options.backlog);
  if (!bound) return std::unexpected(bound.error());
  auto accepted = [&io, tls = std::move(tls), accept = std::move(accept),
                   after_input = std::move(after_input), log, pacing = std::move(bound->pacing),
                   keepalive_s = options.keepalive_s, places](OwnedFd fd) {
    pacing.accepted(fd.get());
    tune_tcp(fd.get(), keepalive_s());
    TcpNames names = tcp_names(fd.get());
    asio::ip::tcp::socket socket(io);
    asio::error_code error;
    const auto family = names.peer.starts_with('[') ? asio::ip::tcp::v6() : asio::ip::tcp::v4();
    socket.assign(family, fd.get(), error);
    if (error) return log("tls: " + error.message());
    static_cast<void>(fd.release());
    SocketNames shown{"tls", std::move(names.peer), std::move(names.local), names.same_host};
    accept(std::make_unique<TlsConnection<asio::ip::tcp::socket>>(std::move(socket), tls(), std::move(shown),
                                                                  after_input, places->take()));
  };
  return std::make_unique<SocketListener>(poller, std::move(bound->fd), "tls " + bound->address, bound->port,
                                          std::move(accepted), std::move(log), places);
}

}  // namespace weir::kv
