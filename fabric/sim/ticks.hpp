// Simulated time: whole ticks of 10 ps, the largest unit in which a byte takes a whole number of ticks
// at every Ethernet speed from 1 to 800 Gb/s (800 and 1). Runs are the same on every machine, because
// times are never rounded twice.
#pragma once

#include <cmath>
#include <cstdint>

namespace weir::fabric::sim {

using Ticks = std::uint64_t;

constexpr Ticks ticks_per_ns = 100;
constexpr Ticks ticks_per_us = 1000 * ticks_per_ns;
constexpr Ticks ticks_per_ms = 1000 * ticks_per_us;
constexpr Ticks ticks_per_s = 1000 * ticks_per_ms;
constexpr Ticks no_time = ~Ticks{0};
// The latest time in a scenario: event keys hold 44 bits of time (event_queue.hpp), 175.9 s.
constexpr double longest_run_ns = 174e9;

constexpr double to_us(Ticks ticks) { return static_cast<double>(ticks) / ticks_per_us; }
constexpr double to_s(Ticks ticks) { return static_cast<double>(ticks) / ticks_per_s; }
inline Ticks from_ns(double ns) { return static_cast<Ticks>(std::llround(ns * ticks_per_ns)); }
// Per byte; exact for the speeds above.
inline std::uint32_t ticks_per_byte(double gbps) {
  return static_cast<std::uint32_t>(std::lround(800 / gbps));
}

}  // namespace weir::fabric::sim
