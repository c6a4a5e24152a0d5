// What a version holds: names, dtypes and shapes of its tensors, and where each lies in its bytes. A single
// array is one tensor without a name; a tree is several. Pure.
//
// Layout, little-endian: u32 magic "WTMD", u32 tensors, u64 data_bytes; then for each tensor u8 code, u8
// bits, u16 lanes, u16 dimensions, u16 name bytes, u64 offset, u64 shape[dimensions], the name. Tensors are
// sorted by offset and do not overlap. Blocks come from strangers: parse_metadata() checks every number, and
// allocates for tensors that it has read, not for those that a block claims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tensor/arrays/dtype.hpp"
#include "tensor/error.hpp"

namespace weir::tensor {

inline constexpr std::size_t most_dimensions = 64;
inline constexpr std::size_t most_name_bytes = 1024;
inline constexpr std::size_t most_tensors = 1 << 20;
inline constexpr std::uint64_t most_data_bytes = std::uint64_t{1} << 46;
inline constexpr std::uint64_t most_metadata_bytes = std::uint64_t{256} << 20;  // of a block

struct TensorInfo {
  std::string name;
  DType dtype;
  std::vector<std::uint64_t> shape;  // empty: one element
  std::uint64_t offset = 0;          // of the first byte, in the version's bytes

  // The number of elements times their size; nothing if that overflows or exceeds most_data_bytes.
  std::optional<std::uint64_t> bytes() const;
  bool operator==(const TensorInfo&) const = default;
};

struct Metadata {
  std::uint64_t data_bytes = 0;
  std::vector<TensorInfo> tensors;

  bool operator==(const Metadata&) const = default;
};

// "float32 (2, 3)", in the words of numpy and torch.
std::string description(const DType& dtype, std::span<const std::uint64_t> shape);

// A block of at most most_metadata_bytes that parse_metadata() accepts; otherwise bad_array with the reason.
Result<std::vector<std::byte>> encode(const Metadata&);
// Errc::protocol with the reason.
Result<Metadata> parse_metadata(std::span<const std::byte> block);

}  // namespace weir::tensor
