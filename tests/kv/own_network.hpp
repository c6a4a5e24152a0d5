// Gives this test its own network namespace, for servers that cannot choose a free port.
#pragma once

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace weir::kv::testing {

// Call before a second thread exists. Returns false if the kernel does not allow it.
inline bool enter_own_network() {
  if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq loopback{};
  std::strncpy(loopback.ifr_name, "lo", sizeof loopback.ifr_name - 1);
  bool up = ::ioctl(fd, SIOCGIFFLAGS, &loopback) == 0;
  loopback.ifr_flags = static_cast<short>(loopback.ifr_flags | IFF_UP);
  up = up && ::ioctl(fd, SIOCSIFFLAGS, &loopback) == 0;
  ::close(fd);
  return up;
}

}  // namespace weir::kv::testing
