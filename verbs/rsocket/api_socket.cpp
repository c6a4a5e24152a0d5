// The C interface: making, naming, connecting, ending.
#include <fcntl.h>
#include <unistd.h>

#include <cstdarg>

#include "verbs/rsocket/api.hpp"
#include "verbs/rsocket/datagram.hpp"
#include "verbs/rsocket/event_poll.hpp"
#include "verbs/rsocket/stream.hpp"

using namespace weir::rsocket;

namespace {

int number_of(const SocketPtr& socket) {
  insert(socket);
  return socket->descriptor();
}

Result<SocketPtr> open(int family, int type) {
  if (type == SOCK_STREAM) return Stream::open(family);
  return Datagram::open(family);
}

}  // namespace

extern "C" {

int rsocket(int domain, int type, int protocol) {
  const int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (domain != AF_INET && domain != AF_INET6) return as_c(EAFNOSUPPORT);
  if (kind != SOCK_STREAM && kind != SOCK_DGRAM) return as_c(EINVAL);
  if (protocol != 0 && protocol != (kind == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP))
    return as_c(EPROTONOSUPPORT);
  const weir::link::NotCancelled whole;
  const auto socket = open(domain, kind);
  if (!socket) return as_c(socket.error());
  if ((type & SOCK_NONBLOCK) != 0) (*socket)->set_status_flags(O_NONBLOCK);
  return number_of(*socket);
}

int rbind(int socket, const sockaddr* address, socklen_t size) {
  return whole_on_socket(socket, [&](Socket& s) { return s.bind(address, size); });
}

int rlisten(int socket, int backlog) {
  return whole_on_socket(socket, [&](Socket& s) { return s.listen(backlog); });
}

int raccept(int socket, sockaddr* address, socklen_t* size) {
  const SocketPtr listener = find(socket);
  if (!listener) return as_c(EBADF);
  const auto taken = listener->accept();
  if (!taken) return as_c(taken.error());
  sockaddr_storage name{};
  if (address != nullptr && (*taken)->peer_name(name) == 0) give_name(name, address, size);
  return number_of(*taken);
}

int rconnect(int socket, const sockaddr* address, socklen_t size) {
  return on_socket(socket, [&](Socket& s) { return s.connect(address, size); });
}

int rshutdown(int socket, int how) {
  return whole_on_socket(socket, [&](Socket& s) { return s.shut_down(how); });
}

int rclose(int socket) {
  const weir::link::NotCancelled whole;
  const SocketPtr closed = remove(socket);
  if (closed) {
    for (const auto& poll : all_event_polls()) poll->forget(socket);  // epoll(7), question 6
    closed->close();
    return 0;
  }
  if (const EventPollPtr poll = remove_event_poll(socket)) {
    poll->close();
    return 0;
  }
  return remove_inherited(socket) ? ::close(socket) : as_c(EBADF);
}

int rgetpeername(int socket, sockaddr* address, socklen_t* size) {
  return on_socket(socket, [&](Socket& s) {
    sockaddr_storage name{};
    const int error = s.peer_name(name);
    return error != 0 ? error : give_name(name, address, size);
  });
}

int rgetsockname(int socket, sockaddr* address, socklen_t* size) {
  return on_socket(socket, [&](Socket& s) {
    sockaddr_storage name{};
    const int error = s.local_name(name);
    return error != 0 ? error : give_name(name, address, size);
  });
}

int rsetsockopt(int socket, int level, int name, const void* value, socklen_t size) {
  return whole_on_socket(socket, [&](Socket& s) { return s.set_option(level, name, value, size); });
}

int rgetsockopt(int socket, int level, int name, void* value, socklen_t* size) {
  return whole_on_socket(socket, [&](Socket& s) { return s.get_option(level, name, value, size); });
}

int rfcntl(int socket, int command, ...) {
  const SocketPtr found = find(socket);
  if (!found) return as_c(EBADF);
  va_list arguments;
  va_start(arguments, command);
  const int argument = command == F_SETFL || command == F_SETFD ? va_arg(arguments, int) : 0;
  va_end(arguments);
  switch (command) {
    case F_GETFL:
      return found->status_flags();
    case F_SETFL:
      found->set_status_flags(argument);
      return 0;
    case F_GETFD:
      return ::fcntl(socket, F_GETFD);
    case F_SETFD:
      return ::fcntl(socket, F_SETFD, argument);
    default:
      return as_c(ENOTSUP);
  }
}

}  // extern "C"
