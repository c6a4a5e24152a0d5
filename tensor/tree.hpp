// How tensors become one version: where each lies in its bytes, and from which pieces of memory those come.
//
// Tensors keep their order. Each begins at a multiple of 64 bytes, so that views of what was fetched are
// aligned. Small ones are copied next to each other into memory of the version's own, large ones are sent
// from where they lie. Pure.
#pragma once

#include <memory>
#include <span>

#include "tensor/error.hpp"
#include "tensor/metadata.hpp"
#include "tensor/source.hpp"
#include "tensor/tensor_view.hpp"

namespace weir::tensor {

inline constexpr std::size_t small_tensor_bytes = 16 << 10;
inline constexpr std::size_t tensor_alignment = 64;

struct Tree {
  Metadata metadata;
  std::shared_ptr<const Source> data;
  std::uint64_t packed_bytes = 0;  // of small tensors, that were copied
};

// bad_array.
Result<Tree> make_tree(std::span<const TensorView> tensors, std::shared_ptr<const void> owner);

}  // namespace weir::tensor
