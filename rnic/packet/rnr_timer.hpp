// How long a requester waits after a RNR NAK, by the code in it (IBA table 45).
#pragma once

#include <array>
#include <cstdint>

namespace weir::rnic {

// In units of 10 us; code 0 is the longest.
inline constexpr std::array<std::uint32_t, 32> rnr_timer_10us = {
    65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

constexpr std::uint64_t rnr_timer_ns(std::uint32_t code) {
  return std::uint64_t{rnr_timer_10us[code & 31]} * 10'000;
}

inline constexpr std::uint8_t rnr_retry_for_ever = 7;

// 4.096 us * 2^code, of the timeout of a queue pair.
constexpr std::uint64_t ack_timeout_ns(std::uint32_t code) { return 4096ull << (code & 31); }

}  // namespace weir::rnic
