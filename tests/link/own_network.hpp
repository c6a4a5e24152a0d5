// A network namespace with loopback only, so that ports with fixed numbers are free.
#pragma once

#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>

#include "link/udp/udp_port.hpp"
#include "link/unique_fd.hpp"

namespace weir::link {

constexpr IpAddress v4_loopback(std::uint8_t last) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, last};
}
// Of loopback's interface too: nothing goes to a group from 127.0.0.0/8.
inline constexpr IpAddress v4_elsewhere = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 77};
inline constexpr IpAddress v6_loopback = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

// Once, before there is a second thread.
inline bool own_network() {
  static const bool entered = [] {
    if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP | IFF_LOOPBACK;
    if (!socket || ::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) return false;
    std::strcpy(request.ifr_name, "lo:1");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    std::memcpy(&address.sin_addr, v4_elsewhere.data() + 12, sizeof address.sin_addr);
    std::memcpy(&request.ifr_addr, &address, sizeof address);
    return ::ioctl(socket.get(), SIOCSIFADDR, &request) == 0;
  }();
  return entered;
}

}  // namespace weir::link
