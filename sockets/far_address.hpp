// An address and port, as messages between hosts encode them and as system calls take them. Pure.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>

namespace weir::sockets {

struct FarAddress {
  std::array<std::uint8_t, 16> address{};  // IPv4 as ::ffff:a.b.c.d
  std::uint32_t port = 0;
  auto operator<=>(const FarAddress&) const = default;
};

sockaddr_storage sockaddr_of(const FarAddress& at);
// All zero if it is neither IPv4 nor IPv6.
std::array<std::uint8_t, 16> address_bytes(const sockaddr* address);

}  // namespace weir::sockets
