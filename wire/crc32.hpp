// CRC-32 as in Ethernet (reflected 0x04c11db7), with the instructions that CPUs offer for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::wire {

// Continues with more bytes. Begin with ones; the complement at the end is the caller's.
std::uint32_t crc32(std::uint32_t crc, std::span<const std::byte>);

struct Crc32Way {
  const char* name;
  std::uint32_t (*add)(std::uint32_t, std::span<const std::byte>);
};
// The methods that this CPU has, the fastest first; crc32() uses that one.
std::span<const Crc32Way> crc32_ways();

}  // namespace weir::wire
