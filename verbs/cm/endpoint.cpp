#include "verbs/cm/endpoint.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

namespace weir::cm {
namespace {
constexpr std::array<std::uint8_t, 12> v4_prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
}

bool Endpoint::is_v4() const { return std::equal(v4_prefix.begin(), v4_prefix.end(), ip.begin()); }

bool Endpoint::is_any() const { return ip == any_v4().ip || ip == any_v6().ip; }

bool Endpoint::is_loopback() const {
  constexpr std::uint8_t loopback_network = 127;
  const Endpoint loopback_v6{.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
  return is_v4() ? ip[v4_prefix.size()] == loopback_network : same_ip(loopback_v6);
}

ibv_gid Endpoint::gid() const {
  ibv_gid gid;
  std::copy(ip.begin(), ip.end(), gid.raw);
  return gid;
}

Endpoint any_v4() {
  Endpoint any;
  std::copy(v4_prefix.begin(), v4_prefix.end(), any.ip.begin());
  return any;
}

Endpoint any_v6() { return {}; }

std::optional<Endpoint> endpoint_of(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  Endpoint endpoint;
  if (address->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, address, sizeof v4);
    endpoint = any_v4();
    std::memcpy(endpoint.ip.data() + v4_prefix.size(), &v4.sin_addr, sizeof v4.sin_addr);
    endpoint.port = ntohs(v4.sin_port);
    return endpoint;
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, address, sizeof v6);
    std::memcpy(endpoint.ip.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
    endpoint.port = ntohs(v6.sin6_port);
    endpoint.scope_id = v6.sin6_scope_id;
    return endpoint;
  }
  return std::nullopt;
}

void store(const Endpoint& endpoint, sockaddr_storage& into) {
  into = {};
  if (endpoint.is_v4()) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port);
    std::memcpy(&v4.sin_addr, endpoint.ip.data() + v4_prefix.size(), sizeof v4.sin_addr);
    std::memcpy(&into, &v4, sizeof v4);
  } else {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(endpoint.port);
    v6.sin6_scope_id = endpoint.scope_id;
    std::memcpy(&v6.sin6_addr, endpoint.ip.data(), sizeof v6.sin6_addr);
    std::memcpy(&into, &v6, sizeof v6);
  }
}

socklen_t size_of(const sockaddr* address) {
  if (address == nullptr) return 0;
  if (address->sa_family == AF_INET) return sizeof(sockaddr_in);
  if (address->sa_family == AF_INET6) return sizeof(sockaddr_in6);
  return 0;
}

}  // namespace weir::cm
