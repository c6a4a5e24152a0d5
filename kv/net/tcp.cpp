// The connection type "tcp": plain TCP sockets on the poller.
#include "kv/net/listener.hpp"
#include "kv/net/socket_connection.hpp"
#include "kv/net/socket_listener.hpp"

namespace weir::kv {

OpenedListener listen_tcp(SocketPoller& poller, const std::string& address, std::uint16_t port,
                          const SocketOptions& options, Accept accept, Log log) {
  auto bound = bind_tcp(address, port, options.backlog);
  if (!bound) return std::unexpected(bound.error());
  auto accepted = [&poller, accept = std::move(accept), pacing = std::move(bound->pacing),
                   keepalive_s = options.keepalive_s](OwnedFd fd) {
    pacing.accepted(fd.get());
    tune_tcp(fd.get(), keepalive_s());
    TcpNames names = tcp_names(fd.get());
    SocketNames socket{"tcp", std::move(names.peer), std::move(names.local), names.same_host};
    accept(std::make_unique<SocketConnection>(poller, std::move(fd), std::move(socket)));
  };
  return std::make_unique<SocketListener>(poller, std::move(bound->fd), "tcp " + bound->address, bound->port,
                                          std::move(accepted), std::move(log));
}

}  // namespace weir::kv
