// The type of an element, in DLPack's numbers (dlpack.h, DLDataTypeCode), so that every DLPack dtype passes
// through, including those that numpy has no name for. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace weir::tensor {

struct DType {
  std::uint8_t code = 2;   // 0 int, 1 uint, 2 float, 3 opaque, 4 bfloat, 5 complex, 6 bool, 7.. float8 kinds
  std::uint8_t bits = 32;  // of one lane
  std::uint16_t lanes = 1;

  // Elements are whole bytes. A program packs narrower ones itself and sends them as uint8.
  bool valid() const { return bits > 0 && bits <= 128 && lanes > 0 && (bits * lanes) % 8 == 0; }
  std::size_t bytes() const { return std::size_t{bits} * lanes / 8; }
  bool operator==(const DType&) const = default;
};

}  // namespace weir::tensor
