// From where to where a datagram goes.
#pragma once

#include <array>
#include <cstdint>

namespace weir::link {

using IpAddress = std::array<std::uint8_t, 16>;  // IPv4 as ::ffff:a.b.c.d, which is also its GID

// A link-local IPv6 address means something on one link only.
inline bool is_link_local(const IpAddress& ip) { return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80; }

struct UdpRoute {
  IpAddress source{}, destination{};
  std::uint8_t traffic_class = 0, hop_limit = 64;
  std::uint32_t interface = 0;  // of `source`, to a link-local destination or a group
};

}  // namespace weir::link
