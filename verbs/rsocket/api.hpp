// What the files of the C interface share. rdma/rsocket.h declares the functions; rsocket(7) describes them.
#pragma once

#include <rdma/rsocket.h>

#include <cerrno>

#include "link/not_cancelled.hpp"
#include "verbs/rsocket/table.hpp"

// Newer than Debian's rdma/rsocket.h (rdma-core 65). As epoll_create1, epoll_ctl and epoll_wait, for rsockets
// and plain descriptors; rclose() closes what repoll_create() made.
extern "C" {
int repoll_create(int flags);
int repoll_ctl(int epfd, int operation, int fd, struct epoll_event* event);
int repoll_wait(int epfd, struct epoll_event* events, int most, int timeout);
}

namespace weir::rsocket {

// 0 stays 0; an errno is set and becomes -1.
inline int as_c(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

inline ssize_t as_c(const Result<std::size_t>& result) {
  return result ? static_cast<ssize_t>(*result) : as_c(result.error());
}

// As getsockname: what fits is copied, and the size says how long the name is.
inline int give_name(const sockaddr_storage& name, sockaddr* address, socklen_t* size) {
  if (size == nullptr) return address == nullptr ? 0 : EFAULT;
  const socklen_t whole = size_of_family(name.ss_family);
  if (address != nullptr) std::memcpy(address, &name, std::min(*size, whole));
  *size = whole;
  return 0;
}

// Calls `call(socket)`, whose result as_c() understands. EBADF: that number is no rsocket.
template <class Call>
auto on_socket(int number, Call call) -> decltype(as_c(call(std::declval<Socket&>()))) {
  const SocketPtr socket = find(number);
  if (!socket) return as_c(EBADF);
  return as_c(call(*socket));
}

// The same of a call that is no cancellation point.
template <class Call>
auto whole_on_socket(int number, Call call) {
  const link::NotCancelled whole;
  return on_socket(number, call);
}

}  // namespace weir::rsocket
