#include "verbs/rsocket/socket.hpp"

#include <fcntl.h>
#include <netinet/in.h>

#include <cstring>

namespace weir::rsocket {

int Socket::status_flags() {
  const std::scoped_lock hold(mutex_);
  return O_RDWR | status_flags_;
}

void Socket::set_status_flags(int flags) {
  const std::scoped_lock hold(mutex_);
  status_flags_ = flags & ~O_ACCMODE;
}

bool Socket::locked_blocks(int flags) const {
  return (status_flags_ & O_NONBLOCK) == 0 && (flags & MSG_DONTWAIT) == 0;
}

short Socket::ready(short events) {
  const std::scoped_lock hold(mutex_);
  return locked_ready(events);
}

void Socket::begin_sleep(Waiter& waiter, std::vector<pollfd>& others) {
  const std::scoped_lock hold(mutex_);
  locked_prepare_sleep(others);
  watchers_.add(waiter);
}

void Socket::end_sleep(Waiter& waiter) {
  const std::scoped_lock hold(mutex_);
  watchers_.remove(waiter);
}

void Socket::watch(Watcher& watcher) {
  const std::scoped_lock hold(mutex_);
  watchers_.add(watcher);
}

void Socket::unwatch(Watcher& watcher) {
  const std::scoped_lock hold(mutex_);
  watchers_.remove(watcher);
}

Socket::Armed Socket::arm() {
  const std::scoped_lock hold(mutex_);
  Armed armed;
  locked_prepare_sleep(armed.descriptors);
  armed.generation = generation_;
  return armed;
}

void Socket::silence() {
  const std::scoped_lock hold(mutex_);
  locked_silence();
}

sockaddr_storage in_family(const sockaddr_storage& address, int family) {
  if (family != AF_INET6 || address.ss_family != AF_INET) return address;
  sockaddr_in v4;
  std::memcpy(&v4, &address, sizeof v4);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = v4.sin_port;
  v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
  std::memcpy(&v6.sin6_addr.s6_addr[12], &v4.sin_addr, sizeof v4.sin_addr);
  sockaddr_storage mapped{};
  std::memcpy(&mapped, &v6, sizeof v6);
  return mapped;
}

socklen_t size_of_family(int family) {
  return family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

}  // namespace weir::rsocket
