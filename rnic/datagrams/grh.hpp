// The 40 bytes in front of a datagram's payload: on RoCE v2 the packet's IP header, an IPv6 header in all of
// them or an IPv4 header in the last 20, the first then zero (annex A17.4.5.2). Pure.
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

// All but the length, and the checksum over it: each datagram has its own.
Grh write_grh(const GrhFields&);
void finish_grh(std::span<std::byte, grh_bytes>, std::uint64_t payload_bytes, bool has_imm);
GrhFields read_grh(std::span<const std::byte, grh_bytes>);

}  // namespace weir::rnic
