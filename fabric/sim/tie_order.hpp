// Which of several ports is served first at the same time. Frames of equal ports keep step, so a fixed order
// would serve the same port first every time: of two senders that share a full buffer, one would lose all
// that is lost.
//
// An order is a permutation of the event sources, drawn anew for each time by a hash of time and seed. It is
// computed both ways and never stored: source -> rank, which event keys are compared by, and rank -> source.
#pragma once

#include <cstdint>

#include "fabric/sim/random.hpp"
#include "fabric/sim/ticks.hpp"

namespace weir::fabric::sim {

class TieOrder {
 public:
  static constexpr unsigned bits = 20;
  static constexpr std::uint32_t mask = (1u << bits) - 1;

  explicit TieOrder(std::uint64_t seed) : seed_(mix(seed)) {}

  std::uint32_t rank(Ticks time, std::uint32_t source) const {
    std::uint32_t word = (source ^ offset(time)) * spread & mask;
    word ^= word >> (bits / 2);
    return word * spread & mask;
  }
  std::uint32_t source(Ticks time, std::uint32_t rank) const {
    std::uint32_t word = rank * gather & mask;
    word ^= word >> (bits / 2);  // undoes itself: the upper half is as it was
    return (word * gather & mask) ^ offset(time);
  }

 private:
  static constexpr std::uint32_t spread = 0x9e375;  // odd: multiplying by it permutes
  static constexpr std::uint32_t gather = 0xb94dd;  // its inverse
  static_assert((spread * gather & mask) == 1);

  std::uint32_t offset(Ticks time) const {
    return static_cast<std::uint32_t>(((time ^ seed_) * 0x9e3779b97f4a7c15) >> (64 - bits));
  }
  std::uint64_t seed_;
};

}  // namespace weir::fabric::sim
