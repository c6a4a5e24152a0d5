#include "transport/unix_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace weir::transport {

namespace {

std::optional<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  path.copy(address.sun_path, path.size());
  return address;
}

OwnedFd stream_socket() { return OwnedFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

// 0 or an errno.
int connect_to(int fd, const sockaddr_un& address) {
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}
int bind_to(int fd, const sockaddr_un& address) {
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

// A socket file on which nobody answers was left by a server that was killed. Anything else is left alone.
bool remove_stale(const std::string& path, const sockaddr_un& address) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return false;
  const OwnedFd probe = stream_socket();
  return probe && connect_to(probe.get(), address) == ECONNREFUSED && ::unlink(path.c_str()) == 0;
}

}  // namespace

std::expected<OwnedFd, int> connect_unix(const std::string& path) {
  const auto address = unix_address(path);
  if (!address) return std::unexpected(ENAMETOOLONG);
  OwnedFd fd = stream_socket();
  if (!fd) return std::unexpected(errno);
  if (const int error = connect_to(fd.get(), *address); error != 0) return std::unexpected(error);
  return fd;
}

UnixSocketFile::UnixSocketFile(std::string path) : path_(std::move(path)), bound_(identity_of(path_)) {}

UnixSocketFile::UnixSocketFile(UnixSocketFile&& other) noexcept
    : path_(std::move(other.path_)), bound_(std::exchange(other.bound_, std::nullopt)) {}

UnixSocketFile& UnixSocketFile::operator=(UnixSocketFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bound_, other.bound_);
  return *this;
}

std::optional<UnixSocketFile::Identity> UnixSocketFile::identity_of(const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return std::nullopt;
  return Identity{info.st_dev, info.st_ino};
}

void UnixSocketFile::remove() {
  if (bound_ && identity_of(path_) == bound_) ::unlink(path_.c_str());
  bound_.reset();
}

std::expected<ListeningUnixSocket, int> listen_unix(const std::string& path, unsigned mode, int backlog) {
  const auto address = unix_address(path);
  if (!address) return std::unexpected(ENAMETOOLONG);
  OwnedFd fd = stream_socket();
  if (!fd) return std::unexpected(errno);
  // The file takes the socket's permissions, less the umask's, so at no time may more users connect than
  // `mode` says; what the umask took away comes back before anybody can connect (CVE-2023-45145).
  if (mode != 0 && ::fchmod(fd.get(), mode) != 0) return std::unexpected(errno);
  int error = bind_to(fd.get(), *address);
  if (error == EADDRINUSE && remove_stale(path, *address)) error = bind_to(fd.get(), *address);
  if (error != 0) return std::unexpected(error);
  UnixSocketFile file(path);
  if (mode != 0 && ::chmod(path.c_str(), mode) != 0) return std::unexpected(errno);
  if (::listen(fd.get(), backlog) != 0) return std::unexpected(errno);
  return ListeningUnixSocket{std::move(fd), std::move(file)};
}

}  // namespace weir::transport
