// A seeded source of choices that does not depend on the order in which they are asked for.
//
// Each choice is a function of the seed, the queue pair (by its order of creation), the request (by its count
// in the queue) and what is chosen. So a run with the same seed makes the same choices for the same request,
// whatever other threads do meanwhile. Pure.
#pragma once

#include <cstdint>

namespace weir::rnic::weak {

class Choices {
 public:
  Choices(std::uint64_t seed, std::uint64_t queue, std::uint64_t request)
      : state_(mixed(mixed(mixed(seed) ^ queue) ^ request)) {}

  // 0 to below - 1.
  std::uint32_t pick(std::uint32_t below) {
    state_ += 0x9e3779b97f4a7c15ull;
    return static_cast<std::uint32_t>((mixed(state_) >> 32) * below >> 32);
  }
  bool one_in(std::uint32_t many) { return pick(many) == 0; }

 private:
  // SplitMix64 (Steele, Lea, Flood 2014).
  static constexpr std::uint64_t mixed(std::uint64_t z) {
    z += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

}  // namespace weir::rnic::weak
