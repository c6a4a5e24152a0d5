// The C library's calls that make, copy, close and set descriptors. Entry points for other people's programs.
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>

#include "preload/next_call.hpp"
#include "sockets/connection_objects.hpp"
#include "sockets/connections.hpp"
#include "sockets/descriptors.hpp"
#include "sockets/settings.hpp"

using weir::sockets::Connection;
using weir::sockets::Connections;
using weir::sockets::Descriptors;
using weir::sockets::is_out_of_the_way;
using weir::sockets::Reason;
using weir::sockets::Use;

namespace {

// A child of vfork() shares our memory, so its close() would forget our connections: our vfork() is fork().
// The child that the C library's posix_spawn() makes closes descriptors without calling us.
void closing(int fd) {
  const int before = errno;
  Connections::closing(fd);
  errno = before;
}

void close_all(unsigned first, unsigned last) {
  for (int fd; (fd = Descriptors::next_known(first, last)) >= 0;) closing(fd);
}

int copied(int fd, int copy) {
  if (copy >= 0 && Descriptors::is_known(fd)) Connections::copied(fd, copy);
  return copy;
}

int accepted(int fd) {
  if (fd < 0 || weir::sockets::settings().off) return fd;
  const int before = errno;
  int protocol = 0;
  socklen_t size = sizeof protocol;
  Connections::forget(fd);
  if (::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 && protocol == IPPROTO_TCP)
    Connections::born(fd, true);
  errno = before;
  return fd;
}

struct Option {
  int level, name;
};
// Options that concern the bytes as TCP carries them, by number: some are newer than the C library.
constexpr Option for_tcp_alone[] = {{SOL_SOCKET, SO_RCVLOWAT},
                                    {SOL_SOCKET, SO_OOBINLINE},
                                    {SOL_SOCKET, SO_ATTACH_FILTER},
                                    {SOL_SOCKET, 50 /* SO_ATTACH_BPF */},
                                    {SOL_SOCKET, SO_TIMESTAMP},
                                    {SOL_SOCKET, 35 /* SO_TIMESTAMPNS */},
                                    {SOL_SOCKET, 37 /* SO_TIMESTAMPING */},
                                    {SOL_SOCKET, 42 /* SO_PEEK_OFF */},
                                    {SOL_SOCKET, 47 /* SO_MAX_PACING_RATE */},
                                    {SOL_SOCKET, 60 /* SO_ZEROCOPY */},
                                    {SOL_SOCKET, 63 /* SO_TIMESTAMP_NEW */},
                                    {SOL_SOCKET, 64 /* SO_TIMESTAMPNS_NEW */},
                                    {SOL_SOCKET, 65 /* SO_TIMESTAMPING_NEW */},
                                    {IPPROTO_TCP, 14 /* TCP_MD5SIG */},
                                    {IPPROTO_TCP, 19 /* TCP_REPAIR */},
                                    {IPPROTO_TCP, 31 /* TCP_ULP */},
                                    {IPPROTO_TCP, 32 /* TCP_MD5SIG_EXT */},
                                    {IPPROTO_TCP, 36 /* TCP_INQ */},
                                    {IPPROTO_TCP, 38 /* TCP_AO_ADD_KEY */}};

bool is_for_tcp_alone(int level, int name) {
  return std::ranges::any_of(for_tcp_alone,
                             [&](const Option& one) { return one.level == level && one.name == name; });
}

void stay(int fd, Reason why) {
  if (const Use use(fd); use) use->stay(fd, why);
}

using Fcntl = int(int, int, ...);

int fcntl_of(Fcntl* call, int fd, int command, void* argument) {
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return copied(fd, call(fd, command, argument));
  if (command == F_SETFL && (reinterpret_cast<std::intptr_t>(argument) & O_ASYNC) != 0)
    stay(fd, Reason::signal_driven);
  if (command == F_SETSIG || command == F_SETOWN) stay(fd, Reason::signal_driven);
  return call(fd, command, argument);
}

}  // namespace

extern "C" {

int socket(int domain, int type, int protocol) noexcept {
  WEIR_NEXT(int(int, int, int), socket);
  const int made = call(domain, type, protocol);
  if (made < 0) return made;
  constexpr int flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
  Connections::forget(made);
  if ((domain == AF_INET || domain == AF_INET6) && (type & ~flags) == SOCK_STREAM &&
      (protocol == 0 || protocol == IPPROTO_TCP))
    Connections::born(made);
  return made;
}

int accept(int fd, sockaddr* address, socklen_t* size) {
  WEIR_NEXT(int(int, sockaddr*, socklen_t*), accept);
  return accepted(call(fd, address, size));
}

int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  WEIR_NEXT(int(int, sockaddr*, socklen_t*, int), accept4);
  return accepted(call(fd, address, size, flags));
}

// A connect() to no address ends a connection, and its descriptor may then be connected to another peer.
int connect(int fd, const sockaddr* address, socklen_t size) {
  WEIR_NEXT(int(int, const sockaddr*, socklen_t), connect);
  const int result = call(fd, address, size);
  if (result == 0 && address != nullptr && address->sa_family == AF_UNSPEC && Descriptors::is_known(fd))
    Connections::disconnected(fd);
  return result;
}

int shutdown(int fd, int how) noexcept {
  WEIR_NEXT(int(int, int), shutdown);
  const Use use(fd);
  const bool ends_sending = use && how != SHUT_RD;
  if (ends_sending) use->end_sending(fd);
  const int result = call(fd, how);
  if (ends_sending && result == 0) use->end_sending(fd);
  return result;
}

int close(int fd) {
  WEIR_NEXT(int(int), close);
  if (is_out_of_the_way(fd)) {
    errno = EBADF;
    return -1;
  }
  closing(fd);
  return call(fd);
}

int fclose(FILE* file) {
  WEIR_NEXT(int(FILE*), fclose);
  if (file != nullptr) closing(::fileno(file));
  return call(file);
}

int close_range(unsigned first, unsigned last, int flags) noexcept {
  WEIR_NEXT(int(unsigned, unsigned, int), close_range);
  if ((flags & CLOSE_RANGE_CLOEXEC) == 0 && first <= last) close_all(first, last);
  // Close the ranges around our own descriptors, from the lowest on.
  for (unsigned from = first;;) {
    const int ours = weir::sockets::next_out_of_the_way(from, last);
    if (ours < 0) return call(from, last, flags);
    if (static_cast<unsigned>(ours) > from && call(from, static_cast<unsigned>(ours) - 1, flags) != 0)
      return -1;
    if (static_cast<unsigned>(ours) >= last) return 0;
    from = static_cast<unsigned>(ours) + 1;
  }
}

void closefrom(int first) noexcept { ::close_range(static_cast<unsigned>(std::max(first, 0)), ~0u, 0); }

int dup(int fd) noexcept {
  WEIR_NEXT(int(int), dup);
  return copied(fd, call(fd));
}

int dup2(int fd, int as) noexcept {
  WEIR_NEXT(int(int, int), dup2);
  if (fd != as && ::fcntl(fd, F_GETFD) >= 0) closing(as);
  return copied(fd, call(fd, as));
}

int dup3(int fd, int as, int flags) noexcept {
  WEIR_NEXT(int(int, int, int), dup3);
  if (fd != as && ::fcntl(fd, F_GETFD) >= 0) closing(as);
  return copied(fd, call(fd, as, flags));
}

int fcntl(int fd, int command, ...) {
  WEIR_NEXT(Fcntl, fcntl);
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return Descriptors::is_known(fd) ? fcntl_of(call, fd, command, argument) : call(fd, command, argument);
}

int fcntl64(int fd, int command, ...) {
  WEIR_NEXT(Fcntl, fcntl64);
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return Descriptors::is_known(fd) ? fcntl_of(call, fd, command, argument) : call(fd, command, argument);
}

int ioctl(int fd, unsigned long request, ...) noexcept {
  WEIR_NEXT(int(int, unsigned long, ...), ioctl);
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (!Descriptors::is_known(fd)) return call(fd, request, argument);
  const Use use(fd);
  if (use && request == FIOASYNC && argument != nullptr && *static_cast<int*>(argument) != 0)
    use->stay(fd, Reason::signal_driven);
  const int result = call(fd, request, argument);
  if (result == 0 && use && use->engaged()) {
    if (request == FIONREAD) {
      if (const auto unread = use->unread(); unread > 0)
        *static_cast<int*>(argument) = static_cast<int>(std::min<std::uint64_t>(unread, INT_MAX));
    }
    if (request == SIOCOUTQ) *static_cast<int*>(argument) += static_cast<int>(use->unsent());
  }
  return result;
}

int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept {
  WEIR_NEXT(int(int, int, int, const void*, socklen_t), setsockopt);
  if (Descriptors::is_known(fd) && is_for_tcp_alone(level, name)) stay(fd, Reason::socket_option);
  return call(fd, level, name, value, size);
}

}  // extern "C"
