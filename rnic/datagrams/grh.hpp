// The 40 bytes in front of a datagram's payload. On RoCE v2 they hold the packet's IP header: an IPv6 header
// fills all of them; an IPv4 header fills the last 20, and the rest are zero (annex A17.4.5.2). Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "rnic/types.hpp"

namespace weir::rnic {

using Grh = std::array<std::byte, grh_bytes>;

struct GrhFields {
  Gid source{}, destination{};  // both IPv4 in mapped form, or neither
  std::uint8_t traffic_class = 0, hop_limit = 0;
  std::uint32_t flow_label = 0;
};

// Writes everything except the length and its checksum, which differ for each datagram.
Grh write_grh(const GrhFields&);
void finish_grh(std::span<std::byte, grh_bytes>, std::uint64_t payload_bytes, bool has_imm);
GrhFields read_grh(std::span<const std::byte, grh_bytes>);

}  // namespace weir::rnic
