// Where the system's clocks stand when virtual time is 0, and deadlines by them.
#pragma once

#include <time.h>

#include <algorithm>

#include "twin/inside/baton.hpp"

namespace weir::twin {

inline constexpr std::uint64_t first_second = 1'767'225'600;  // 2026-01-01 00:00:00 UTC
inline constexpr std::uint64_t uptime_seconds = 1000;

// Seconds: in Ticks the time since 1970 has no room.
std::uint64_t base_seconds(clockid_t clock);
Ticks ticks_of(const timespec& time);
timespec timespec_of(Ticks at, std::uint64_t base_s = 0);
// Virtual time when that clock shows `absolute`.
Ticks deadline_of(clockid_t clock, const timespec& absolute);

}  // namespace weir::twin
