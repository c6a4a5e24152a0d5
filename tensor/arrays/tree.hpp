// Lays tensors out as one version: where each lies in its bytes, and which memory those come from.
//
// Tensors keep their order. Each begins at a multiple of 64 bytes, so that views of the fetched bytes are
// aligned. Small tensors are copied next to each other into memory that the version owns; large ones are sent
// from where they lie. Pure.
#pragma once

#include <memory>
#include <span>

#include "tensor/arrays/metadata.hpp"
#include "tensor/arrays/source.hpp"
#include "tensor/arrays/tensor_view.hpp"
#include "tensor/error.hpp"

namespace weir::tensor {

inline constexpr std::size_t small_tensor_bytes = 16 << 10;
inline constexpr std::size_t tensor_alignment = 64;

struct Tree {
  Metadata metadata;
  std::shared_ptr<const Source> data;
  std::uint64_t packed_bytes = 0;  // bytes of small tensors, which were copied
};

// Errc::bad_array.
Result<Tree> make_tree(std::span<const TensorView> tensors, std::shared_ptr<const void> owner);

}  // namespace weir::tensor
