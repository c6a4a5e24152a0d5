// Pieces of memory of small collections: many keys have one, so each has little room to spare.
#pragma once

#include <bit>
#include <cstddef>

namespace weir::kv {

// What the heap gives to whoever asks for so many bytes: multiples of 16, from 128 on four sizes for each
// power of two. An owner that always asks for that much need not keep how much it has.
inline std::size_t tight_capacity(std::size_t bytes) {
  const std::size_t step = bytes <= 128 ? 16 : std::bit_floor(bytes - 1) / 4;
  return (bytes + step - 1) / step * step;
}

}  // namespace weir::kv
