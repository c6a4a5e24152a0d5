// The RNR NAK timer: how long a requester waits before it sends again what found no receive posted. The
// responder's queue pair says it, as one of 32 codes (IBA 9.7.5.2.8, table 45). Pure.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weir::rdma {

// By code, in tens of microseconds.
inline constexpr std::uint8_t rnr_timer_codes = 32;
inline constexpr std::array<std::uint32_t, rnr_timer_codes> rnr_timers_10us = {
    65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

constexpr std::chrono::microseconds rnr_timer(std::uint8_t code) {
  return std::chrono::microseconds(10 * rnr_timers_10us[code % rnr_timer_codes]);
}

// The shortest that is not below `wait`; the longest there is if none is.
constexpr std::uint8_t rnr_timer_code(std::chrono::microseconds wait) {
  for (std::uint8_t code = 1; code < rnr_timer_codes; ++code)
    if (rnr_timer(code) >= wait) return code;
  return 0;
}

}  // namespace weir::rdma
