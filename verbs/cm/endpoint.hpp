// An IP address and port as the connection manager compares them: one form for IPv4 and IPv6, the form a RoCE
// v2 GID has. Values; safe from any thread.
#pragma once

#include <infiniband/verbs.h>
#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <optional>

namespace weir::cm {

using IpBytes = std::array<std::uint8_t, 16>;  // IPv4 as ::ffff:a.b.c.d

struct Endpoint {
  IpBytes ip{};
  std::uint16_t port = 0;      // host order
  std::uint32_t scope_id = 0;  // of a link-local IPv6 address

  bool is_v4() const;
  bool is_any() const;  // 0.0.0.0 or ::
  bool is_loopback() const;
  bool same_ip(const Endpoint& other) const { return ip == other.ip; }
  ibv_gid gid() const;
};

Endpoint any_v4();
Endpoint any_v6();

// Nothing: neither AF_INET nor AF_INET6.
std::optional<Endpoint> endpoint_of(const sockaddr* address);
void store(const Endpoint& endpoint, sockaddr_storage& into);
socklen_t size_of(const sockaddr* address);  // 0 for other families

}  // namespace weir::cm
