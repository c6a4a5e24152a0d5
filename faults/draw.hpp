// The one source of chance in faults: numbers that the seed and what is drawn for determine.
#pragma once

#include <cstdint>

namespace weir::faults {

// SplitMix64's finisher (Steele, Lea, Flood 2014): each bit of the result depends on each of the input.
constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// Whether a number drawn evenly from all of 64 bits is within that share of them.
constexpr bool is_within(std::uint64_t drawn, double share) {
  constexpr double draws = 18446744073709551616.0;  // 2^64
  return static_cast<double>(drawn) < share * draws;
}

}  // namespace weir::faults
