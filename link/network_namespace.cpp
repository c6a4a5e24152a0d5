#include "link/network_namespace.hpp"

#include <sys/socket.h>

#include <cstdint>

#include "link/unique_fd.hpp"

#ifndef SO_NETNS_COOKIE  // Linux 5.14; Debian 12's C library lacks it
#define SO_NETNS_COOKIE 71
#endif

namespace weir::link {

std::string network_folder() {
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  // Any socket has a network namespace; a unix socket needs no protocol that may be missing.
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::getsockopt(socket.get(), SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) != 0) cookie = 0;
  return std::string(network_folder_prefix) + std::to_string(cookie);
}

}  // namespace weir::link
