// Packets as short as they can be: what a fault looks at, and nothing else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "wire/opcodes.hpp"

namespace weir::faults {

using Bytes = std::array<std::byte, 16>;

inline Bytes packet_of(std::uint8_t opcode, std::uint32_t destination, std::uint32_t psn,
                       std::uint8_t syndrome = 0) {
  Bytes bytes{};
  bytes[0] = std::byte{opcode};
  for (unsigned i = 0; i < 3; ++i) {
    bytes[5 + i] = std::byte(destination >> (16 - 8 * i));
    bytes[9 + i] = std::byte(psn >> (16 - 8 * i));
  }
  bytes[12] = std::byte{syndrome};
  return bytes;
}

inline std::uint8_t rc(wire::Operation operation) { return wire::opcode(wire::Service::rc, operation); }

}  // namespace weir::faults
