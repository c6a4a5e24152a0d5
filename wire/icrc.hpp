// The invariant CRC of RoCEv2 (IBA 7.8.1, annex A17.3.3): CRC-32 over the packet from its IP header on, with
// the fields that switches change taken as ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::wire {

// `packet` begins with the IP header and ends where the ICRC begins. The result stands little-endian in the
// packet.
std::uint32_t icrc(std::span<const std::byte> packet);

}  // namespace weir::wire
