// The connection type "unix": stream sockets in the file system, on the poller.
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "kv/net/listener.hpp"
#include "kv/net/socket_connection.hpp"
#include "kv/net/socket_listener.hpp"

namespace weir::kv {

namespace {

// Which file a path names; nothing where there is none. The descriptor of a socket does not tell: it is an
// inode of another file system.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};
FileIdentity identity_of(const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino};
}

// Removes its socket file when it goes, but not that of a server that has taken the path since.
class UnixListener final : public SocketListener {
 public:
  UnixListener(SocketPoller& poller, OwnedFd fd, const std::string& path, Accepted accepted, Log log)
      : SocketListener(poller, std::move(fd), "unix " + path, 0, std::move(accepted), std::move(log)),
        path_(path),
        bound_(identity_of(path)) {}
  ~UnixListener() override {
    if (bound_ == identity_of(path_)) ::unlink(path_.c_str());
  }

 private:
  std::string path_;
  FileIdentity bound_;
};

// A socket file nobody answers on is a leftover of a server that was killed; anything else is left alone.
bool remove_stale(const std::string& path, const sockaddr_un& address) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return false;
  const OwnedFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!probe) return false;
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return false;
  return errno == ECONNREFUSED && ::unlink(path.c_str()) == 0;
}

}  // namespace

OpenedListener listen_unix(SocketPoller& poller, const std::string& path, unsigned mode,
                           const SocketOptions& options, Accept accept, Log log) {
  const std::string failed = "Could not listen on the unix socket " + path + ": ";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return std::unexpected(failed +
                           "the path is longer than the system's 107 characters. Choose a shorter one.");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  OwnedFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return std::unexpected(failed + std::strerror(errno));
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  // The file takes the socket's permissions, less the umask's, so at no time may more users connect than
  // `mode` says; what the umask took away comes back before anybody can connect (CVE-2023-45145).
  if (mode != 0 && ::fchmod(fd.get(), mode) != 0) return std::unexpected(failed + std::strerror(errno));
  int error = ::bind(fd.get(), name, sizeof address) == 0 ? 0 : errno;
  if (error == EADDRINUSE && remove_stale(path, address)) {
    error = ::bind(fd.get(), name, sizeof address) == 0 ? 0 : errno;
  }
  if (error == 0 && mode != 0 && ::chmod(path.c_str(), mode) != 0) error = errno;
  if (error == 0 && ::listen(fd.get(), options.backlog) != 0) error = errno;
  if (error == EADDRINUSE)
    return std::unexpected(failed + "another program listens there, or a file is in the way.");
  if (error != 0) return std::unexpected(failed + std::strerror(error) + ". Check --unixsocket.");
  auto accepted = [&poller, accept = std::move(accept), path](OwnedFd client) {
    SocketNames names{"unix", path + ":0", path + ":0", true};
    accept(std::make_unique<SocketConnection>(poller, std::move(client), std::move(names)));
  };
  return std::make_unique<UnixListener>(poller, std::move(fd), path, std::move(accepted), std::move(log));
}

}  // namespace weir::kv
