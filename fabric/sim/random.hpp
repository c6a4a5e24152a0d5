// Random numbers that are the same on every machine: the standard library's distributions differ between
// implementations. The generator is splitmix64.
#pragma once

#include <cmath>
#include <cstdint>

namespace weir::fabric::sim {

constexpr std::uint64_t mix(std::uint64_t word) {
  word += 0x9e3779b97f4a7c15;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    const std::uint64_t word = mix(state_);
    state_ += 0x9e3779b97f4a7c15;
    return word;
  }
  // In [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // In [0, limit); limit > 0.
  std::uint32_t below(std::uint32_t limit) {
    return static_cast<std::uint32_t>(((next() >> 32) * limit) >> 32);
  }
  double exponential(double mean) { return -mean * std::log1p(-unit()); }

 private:
  std::uint64_t state_;
};

}  // namespace weir::fabric::sim
