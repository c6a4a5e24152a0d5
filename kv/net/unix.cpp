// The connection type "unix": stream sockets in the file system, on the poller.
#include <cerrno>
#include <cstring>

#include "kv/net/listener.hpp"
#include "kv/net/socket_connection.hpp"
#include "kv/net/socket_listener.hpp"
#include "transport/unix_socket.hpp"

namespace weir::kv {

namespace {

// Removes its socket file before it closes the socket.
class UnixListener final : public SocketListener {
 public:
  UnixListener(SocketPoller& poller, transport::ListeningUnixSocket socket, const std::string& path,
               Accepted accepted, Log log)
      : SocketListener(poller, std::move(socket.fd), "unix " + path, 0, std::move(accepted), std::move(log)),
        file_(std::move(socket.file)) {}

 private:
  transport::UnixSocketFile file_;
};

std::string why_not_listening(const std::string& path, int error) {
  const std::string failed = "Could not listen on the unix socket " + path + ": ";
  if (error == ENAMETOOLONG)
    return failed + "the path is longer than the system's 107 characters. Choose a shorter one.";
  if (error == EADDRINUSE) return failed + "another program listens there, or a file is in the way.";
  return failed + std::strerror(error) + ". Check --unixsocket.";
}

}  // namespace

OpenedListener listen_unix(SocketPoller& poller, const std::string& path, unsigned mode,
                           const SocketOptions& options, Accept accept, Log log) {
  auto bound = transport::listen_unix(path, mode, options.backlog);
  if (!bound) return std::unexpected(why_not_listening(path, bound.error()));
  auto accepted = [&poller, accept = std::move(accept), path](OwnedFd client) {
    SocketNames names{"unix", path + ":0", path + ":0", true};
    accept(std::make_unique<SocketConnection>(poller, std::move(client), std::move(names)));
  };
  return std::make_unique<UnixListener>(poller, std::move(*bound), path, std::move(accepted), std::move(log));
}

}  // namespace weir::kv
