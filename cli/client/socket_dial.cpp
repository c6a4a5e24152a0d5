#include "cli/client/socket_dial.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "transport/tcp_pacing.hpp"
#include "transport/unix_socket.hpp"

namespace weir::client {
namespace {

using Clock = std::chrono::steady_clock;

// Starts connecting and waits for the result: 0 or an errno.
int connect_within(int fd, const sockaddr* address, socklen_t length, Clock::time_point deadline) {
  if (::connect(fd, address, length) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  for (;;) {
    const auto left = std::chrono::duration_cast<Milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return ETIMEDOUT;
    pollfd wait{fd, POLLOUT, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return errno;
    if (ready <= 0) continue;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
  }
}

std::unexpected<Error> unreachable(const Endpoint& endpoint, const std::string& why) {
  return fail(ErrorKind::unreachable, "Could not connect to " + address_of(endpoint) + ": " + why);
}

}  // namespace

Result<OwnedFd> dial_tcp(const Endpoint& endpoint, Milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const auto port = std::to_string(endpoint.port);
  if (const int error = ::getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &found))
    return unreachable(endpoint, ::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  int last_error = EADDRNOTAVAIL;
  for (const addrinfo* at = found; at; at = at->ai_next) {
    OwnedFd fd(::socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) {
      last_error = errno;
      continue;
    }
    transport::spare_pacing(fd.get(), at->ai_addr, at->ai_addrlen);
    last_error = connect_within(fd.get(), at->ai_addr, at->ai_addrlen, deadline);
    if (last_error) continue;
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
  }
  return unreachable(endpoint, std::strerror(last_error));
}

Result<OwnedFd> dial_unix(const Endpoint& endpoint, Milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  auto fd = transport::connect_unix(endpoint.path);
  // With a full backlog a unix socket returns EAGAIN instead of connecting later: retry until there is room.
  while (!fd && fd.error() == EAGAIN && Clock::now() < deadline) {
    ::poll(nullptr, 0, 1);
    fd = transport::connect_unix(endpoint.path);
  }
  if (fd) return std::move(*fd);
  if (fd.error() == ENAMETOOLONG)
    return unreachable(endpoint, "the path is longer than a unix socket's may be (107 bytes)");
  return unreachable(endpoint, std::strerror(fd.error()));
}

}  // namespace weir::client
