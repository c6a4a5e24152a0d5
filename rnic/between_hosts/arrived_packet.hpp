// A packet that arrived intact from another host or user, with the addresses of its IP header.
#pragma once

#include <cstdint>

#include "rnic/types.hpp"
#include "wire/roce.hpp"

namespace weir::rnic {

struct ArrivedPacket {
  Gid source{}, destination{};
  std::uint32_t interface = 0;
  std::uint8_t traffic_class = 0, hop_limit = 0;
  std::uint64_t process = 0;  // as of PacketDatagram
  Slot slot = 0;
  wire::Packet packet;
};

// The lower two bits of a traffic class (RFC 3168).
constexpr std::uint8_t ecn_of(std::uint8_t traffic_class) { return traffic_class & 3; }
inline constexpr std::uint8_t congestion_experienced = 3;

}  // namespace weir::rnic
