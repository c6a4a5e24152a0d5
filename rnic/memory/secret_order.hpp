// Small numbers in an order that only the holder of a secret knows: a permutation of [0, 2^bits), a Feistel
// network of four rounds over SipHash (M. Luby, C. Rackoff, "How to construct pseudorandom permutations",
// 1988). `which` selects one of many permutations under one secret. Pure functions; any thread.
#pragma once

#include <cstdint>

#include "hash/siphash.hpp"

namespace weir::rnic {

namespace detail {
constexpr std::uint32_t feistel_rounds = 4;

inline std::uint32_t feistel_round(hash::SipKey secret, std::uint32_t which, std::uint32_t round,
                                   std::uint32_t half) {
  hash::SipState state(secret);
  state.add(std::uint64_t{which} << 32 | round);
  state.add(half);
  return static_cast<std::uint32_t>(state.finish());
}
}  // namespace detail

// `bits` is even, `value` below 2^bits.
inline std::uint32_t in_secret_order(hash::SipKey secret, std::uint32_t which, std::uint32_t bits,
                                     std::uint32_t value) {
  const std::uint32_t mask = (1u << bits / 2) - 1;
  std::uint32_t left = value >> bits / 2, right = value & mask;
  for (std::uint32_t round = 0; round < detail::feistel_rounds; ++round) {
    const std::uint32_t next = left ^ (detail::feistel_round(secret, which, round, right) & mask);
    left = right;
    right = next;
  }
  return left << bits / 2 | right;
}

// The inverse.
inline std::uint32_t from_secret_order(hash::SipKey secret, std::uint32_t which, std::uint32_t bits,
                                       std::uint32_t value) {
  const std::uint32_t mask = (1u << bits / 2) - 1;
  std::uint32_t left = value >> bits / 2, right = value & mask;
  for (std::uint32_t round = detail::feistel_rounds; round > 0; --round) {
    const std::uint32_t before = right ^ (detail::feistel_round(secret, which, round - 1, left) & mask);
    right = left;
    left = before;
  }
  return left << bits / 2 | right;
}

}  // namespace weir::rnic
