#include "rnic/ethernet/toeplitz.hpp"

#include <cassert>

namespace weir::rnic {

std::uint32_t toeplitz_hash(const ToeplitzKey& key, std::span<const std::uint8_t> input) {
  assert(input.size() <= max_toeplitz_input_bytes);
  // The upper half aligns with the current input bit; the lower half holds the key bits that come next.
  std::uint64_t window = 0;
  for (std::size_t i = 0; i < 8; ++i) window = window << 8 | key[i];
  std::uint32_t hash = 0;
  for (std::size_t at = 0; at < input.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit)
      if (input[at] & (0x80u >> bit)) hash ^= static_cast<std::uint32_t>(window << bit >> 32);
    window <<= 8;
    if (at + 8 < key.size()) window |= key[at + 8];
  }
  return hash;
}

}  // namespace weir::rnic
