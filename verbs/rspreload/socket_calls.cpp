// The C library's calls that make, name and connect sockets, and set their options.
//
// Entry points of other people's programs: signatures are the C library's, errno is that of the call behind.
#include <fcntl.h>
#include <rdma/rsocket.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstddef>

#include "verbs/rspreload/callers.hpp"
#include "verbs/rspreload/choice.hpp"
#include "verbs/rspreload/descriptors.hpp"
#include "verbs/rspreload/next_call.hpp"

using namespace weir::rspreload;

namespace {

constexpr int type_flags = SOCK_NONBLOCK | SOCK_CLOEXEC;

// An rsocket of the library's becomes the program's.
int given(int fd) {
  if (fd < 0 || set_kind(fd, Kind::rsocket)) return fd;
  ::rclose(fd);
  errno = EMFILE;
  return -1;
}

int set_blocking(int fd, bool blocks) {
  const int flags = ::rfcntl(fd, F_GETFL);
  if (flags < 0) return -1;
  return ::rfcntl(fd, F_SETFL, blocks ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

int descriptor_command(int fd, int command, void* argument) {
  switch (command) {
    case F_GETFL:
    case F_GETFD:
      return ::rfcntl(fd, command);
    case F_SETFL:
    case F_SETFD:
      return ::rfcntl(fd, command, static_cast<int>(reinterpret_cast<std::intptr_t>(argument)));
    default:
      errno = EINVAL;
      return -1;
  }
}

// What a read would give, or the first part of it.
int count_unread(int fd, int& bytes) {
  std::array<std::byte, 65536> copy;
  const ssize_t got = ::rrecv(fd, copy.data(), copy.size(), MSG_PEEK | MSG_DONTWAIT);
  bytes = static_cast<int>(std::max<ssize_t>(got, 0));
  return got < 0 && errno == EBADF ? -1 : 0;
}

}  // namespace

// The one argument of fcntl and ioctl that may follow.
#define WEIR_ARGUMENT(argument, last)        \
  va_list arguments;                         \
  va_start(arguments, last);                 \
  void* argument = va_arg(arguments, void*); \
  va_end(arguments)

extern "C" {

int socket(int domain, int type, int protocol) {
  WEIR_NEXT(int(int, int, int), socket);
  const int kind = type & ~type_flags;
  const bool taken = WEIR_OF_PROGRAM() &&
                     Choice::of_this_program().takes(program_invocation_short_name, domain, kind, protocol);
  return taken ? given(::rsocket(domain, type, protocol)) : call(domain, type, protocol);
}

int bind(int fd, const sockaddr* address, socklen_t size) {
  WEIR_NEXT(int(int, const sockaddr*, socklen_t), bind);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? ::rbind(fd, address, size) : call(fd, address, size);
}

int listen(int fd, int backlog) {
  WEIR_NEXT(int(int, int), listen);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? ::rlisten(fd, backlog) : call(fd, backlog);
}

int accept(int fd, sockaddr* address, socklen_t* size) {
  WEIR_NEXT(int(int, sockaddr*, socklen_t*), accept);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? given(::raccept(fd, address, size)) : call(fd, address, size);
}

int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  WEIR_NEXT(int(int, sockaddr*, socklen_t*, int), accept4);
  if (!WEIR_OF_PROGRAM() || !is_rsocket(fd)) return call(fd, address, size, flags);
  if ((flags & ~type_flags) != 0) {
    errno = EINVAL;
    return -1;
  }
  const int taken = given(::raccept(fd, address, size));
  if (taken >= 0 && (flags & SOCK_NONBLOCK) != 0) set_blocking(taken, false);
  return taken;
}

int connect(int fd, const sockaddr* address, socklen_t size) {
  WEIR_NEXT(int(int, const sockaddr*, socklen_t), connect);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? ::rconnect(fd, address, size) : call(fd, address, size);
}

int shutdown(int fd, int how) {
  WEIR_NEXT(int(int, int), shutdown);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? ::rshutdown(fd, how) : call(fd, how);
}

int getpeername(int fd, sockaddr* address, socklen_t* size) {
  WEIR_NEXT(int(int, sockaddr*, socklen_t*), getpeername);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? ::rgetpeername(fd, address, size) : call(fd, address, size);
}

int getsockname(int fd, sockaddr* address, socklen_t* size) {
  WEIR_NEXT(int(int, sockaddr*, socklen_t*), getsockname);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? ::rgetsockname(fd, address, size) : call(fd, address, size);
}

int setsockopt(int fd, int level, int name, const void* value, socklen_t size) {
  WEIR_NEXT(int(int, int, int, const void*, socklen_t), setsockopt);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? ::rsetsockopt(fd, level, name, value, size)
                                             : call(fd, level, name, value, size);
}

int getsockopt(int fd, int level, int name, void* value, socklen_t* size) {
  WEIR_NEXT(int(int, int, int, void*, socklen_t*), getsockopt);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? ::rgetsockopt(fd, level, name, value, size)
                                             : call(fd, level, name, value, size);
}

int fcntl(int fd, int command, ...) {
  WEIR_NEXT(int(int, int, ...), fcntl);
  WEIR_ARGUMENT(argument, command);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? descriptor_command(fd, command, argument)
                                             : call(fd, command, argument);
}

int fcntl64(int fd, int command, ...) {
  WEIR_NEXT(int(int, int, ...), fcntl64);
  WEIR_ARGUMENT(argument, command);
  return WEIR_OF_PROGRAM() && is_rsocket(fd) ? descriptor_command(fd, command, argument)
                                             : call(fd, command, argument);
}

int ioctl(int fd, unsigned long request, ...) {
  WEIR_NEXT(int(int, unsigned long, ...), ioctl);
  WEIR_ARGUMENT(argument, request);
  if (WEIR_OF_PROGRAM() && is_rsocket(fd)) {
    if (request == FIONBIO) return set_blocking(fd, *static_cast<const int*>(argument) == 0);
    if (request == FIONREAD) return count_unread(fd, *static_cast<int*>(argument));
  }
  return call(fd, request, argument);
}

}  // extern "C"
