// Addresses as the kernel takes them, from those that GIDs are: IPv4 mapped into IPv6.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "link/udp/udp_route.hpp"

namespace weir::link {

inline constexpr std::array<std::uint8_t, 12> mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

inline bool is_v4(const IpAddress& ip) { return std::equal(mapped.begin(), mapped.end(), ip.begin()); }

inline in_addr v4_of(const IpAddress& ip) {
  in_addr address{};
  std::memcpy(&address, ip.data() + mapped.size(), sizeof address);
  return address;
}

inline in6_addr v6_of(const IpAddress& ip) {
  in6_addr address{};
  std::memcpy(&address, ip.data(), sizeof address);
  return address;
}

inline IpAddress ip_of(const in_addr& address) {
  IpAddress ip{};
  std::ranges::copy(mapped, ip.begin());
  std::memcpy(ip.data() + mapped.size(), &address, sizeof address);
  return ip;
}

inline IpAddress ip_of(const in6_addr& address) {
  IpAddress ip{};
  std::memcpy(ip.data(), &address, sizeof address);
  return ip;
}

// An address as a socket of that family takes it: a socket for both families takes IPv4 in its mapped form.
struct SocketAddress {
  SocketAddress(bool ipv6, const IpAddress& ip, std::uint16_t port, std::uint32_t interface = 0) {
    if (ipv6) {
      sockaddr_in6 v6{};
      v6.sin6_family = AF_INET6;
      v6.sin6_port = htons(port);
      v6.sin6_addr = v6_of(ip);
      v6.sin6_scope_id = is_link_local(ip) ? interface : 0;
      std::memcpy(&storage, &v6, bytes = sizeof v6);
    } else {
      sockaddr_in v4{};
      v4.sin_family = AF_INET;
      v4.sin_port = htons(port);
      v4.sin_addr = v4_of(ip);
      std::memcpy(&storage, &v4, bytes = sizeof v4);
    }
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  // In either family it stands behind the family.
  std::uint16_t port() const {
    sockaddr_in v4;
    std::memcpy(&v4, &storage, sizeof v4);
    return ntohs(v4.sin_port);
  }

  sockaddr_storage storage{};
  socklen_t bytes = 0;
};

}  // namespace weir::link
