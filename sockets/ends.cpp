#include "sockets/ends.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace weir::sockets {
namespace {

Key::End end_at(const sockaddr_storage& address) {
  Key::End end;
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    end.address[10] = end.address[11] = 0xff;
    std::memcpy(end.address.data() + 12, &v4.sin_addr, 4);
    end.port = ntohs(v4.sin_port);
  } else {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    std::memcpy(end.address.data(), &v6.sin6_addr, 16);
    end.port = ntohs(v6.sin6_port);
  }
  return end;
}

bool is_loopback(const Key::End& end) {
  constexpr std::array<std::uint8_t, 12> v4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::equal(v4.begin(), v4.end(), end.address.begin())) return end.address[12] == 127;
  return std::all_of(end.address.begin(), end.address.end() - 1,
                     [](std::uint8_t byte) { return byte == 0; }) &&
         end.address[15] == 1;
}

}  // namespace

std::optional<Ends> ends_of(int fd) {
  sockaddr_storage own{}, other{};
  socklen_t own_size = sizeof own, other_size = sizeof other;
  Ends ends;
  socklen_t size = sizeof ends.key.network_namespace;
  constexpr int so_netns_cookie = 71;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
      ::getpeername(fd, reinterpret_cast<sockaddr*>(&other), &other_size) != 0 ||
      ::getsockopt(fd, SOL_SOCKET, so_netns_cookie, &ends.key.network_namespace, &size) != 0)
    return std::nullopt;
  const Key::End mine = end_at(own), peers = end_at(other);
  // On this host: both ends are loopback addresses, or the peer's address is our own.
  if (mine == peers) return std::nullopt;
  ends.far = mine.address != peers.address && !(is_loopback(mine) && is_loopback(peers));
  if (ends.far && (is_loopback(mine) || is_loopback(peers))) return std::nullopt;
  ends.lower = mine < peers;
  ends.key.low = ends.lower ? mine : peers;
  ends.key.high = ends.lower ? peers : mine;
  return ends;
}

}  // namespace weir::sockets
