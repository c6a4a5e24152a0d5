// The Toeplitz hash of receive-side scaling: for each bit of the input that is set, the 32 bits of the key
// that begin at that bit's place are added, modulo 2 ("RSS Hashing Functions" of Microsoft's NDIS
// documentation, which also has the vectors that tests/rnic/rx_hash_test.cpp verifies).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::rnic {

inline constexpr std::size_t toeplitz_key_bytes = 40;
using ToeplitzKey = std::array<std::uint8_t, toeplitz_key_bytes>;

// What a key of 40 bytes has enough bits for: two IPv6 addresses and two ports.
inline constexpr std::size_t max_toeplitz_input_bytes = 36;

// `input`: in the order in which it stands in a packet, at most max_toeplitz_input_bytes.
std::uint32_t toeplitz_hash(const ToeplitzKey&, std::span<const std::uint8_t> input);

}  // namespace weir::rnic
