#include "sockets/waiter.hpp"

#include <sys/un.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <string>

#include "sockets/system_calls.hpp"

namespace weir::sockets {
namespace {

// Allocates nothing: a program may send from a signal handler that interrupted malloc().
bool set_address(sockaddr_un& address, const Table& table, std::uint32_t bell) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::string& prefix = table.bell_prefix();
  if (prefix.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, prefix.data(), prefix.size());
  char* const number = address.sun_path + prefix.size();
  char* const last = std::end(address.sun_path) - 1;  // which stays 0
  return std::to_chars(number, last, bell).ec == std::errc{};
}

int datagram_socket() {
  return out_of_the_way(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// The socket that wakes others; never closed.
int waking_socket() {
  static const int fd = datagram_socket();
  return fd;
}

}  // namespace

std::unique_ptr<Waiter> Waiter::make(Table& table) {
  const auto bell = table.claim_bell();
  if (!bell) return nullptr;
  sockaddr_un address;
  ::unlink(table.bell_path(*bell).c_str());  // a killed process may have left it
  const int fd = set_address(address, table, *bell) ? datagram_socket() : -1;
  if (fd < 0 || ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (fd >= 0) close_aside(fd);
    table.release_bell(*bell);
    return nullptr;
  }
  return std::unique_ptr<Waiter>(new Waiter(table, *bell, fd));
}

Waiter::~Waiter() {
  ::unlink(table_.bell_path(bell_).c_str());
  close_aside(fd_);
  table_.release_bell(bell_);
}

void Waiter::drain() {
  char byte = 0;
  iovec room{&byte, 1};
  msghdr message{};
  message.msg_iov = &room;
  message.msg_iovlen = 1;
  const int before = errno;
  (void)system_calls().recvmsg(fd_, &message, MSG_DONTWAIT);
  errno = before;
}

bool ring(Table& table, std::uint32_t watcher) {
  if (watcher == 0) return false;
  const std::uint32_t index = (watcher >> 16) - 1, bit = watcher & 0xffff;
  if (index >= max_bells || bit >= most_members) return false;
  Bell& bell = table.bell(index);
  const std::uint64_t mask = std::uint64_t{1} << (bit % 64), word_mask = std::uint64_t{1} << (bit / 64);
  if ((bell.words[bit / 64].load() & mask) == 0) bell.words[bit / 64].fetch_or(mask);
  if ((bell.summary.load() & word_mask) == 0) bell.summary.fetch_or(word_mask);
  if (bell.sleeping.load() == 0 || bell.sleeping.exchange(0) == 0) return false;
  sockaddr_un address;
  if (!set_address(address, table, index)) return false;
  char byte = 0;
  iovec content{&byte, 1};
  msghdr message{};
  message.msg_name = &address;
  message.msg_namelen = sizeof address;
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  const int before = errno;
  // If the socket is full, its owner is awake already. If nobody is there, its owner has gone.
  (void)system_calls().sendmsg(waking_socket(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  errno = before;
  return true;
}

bool ring_all(Table& table, const Side& side) {
  bool slept = false;
  for (const auto& watcher : side.watchers) slept |= ring(table, watcher.load());
  return slept;
}

bool watch(Side& side, std::uint32_t watcher) {
  for (const auto& place : side.watchers)
    if (place.load() == watcher) return true;
  for (auto& place : side.watchers) {
    std::uint32_t none = 0;
    if (place.compare_exchange_strong(none, watcher)) return true;
  }
  return false;
}

void unwatch(Side& side, std::uint32_t watcher) {
  for (auto& place : side.watchers) {
    std::uint32_t it = watcher;
    if (place.compare_exchange_strong(it, 0)) return;
  }
}

}  // namespace weir::sockets
