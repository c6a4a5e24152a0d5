// A tensor in the program's memory, to publish or push: contiguous, in C order. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/arrays/dtype.hpp"

namespace weir::tensor {

struct TensorView {
  std::string name;  // within a tree; empty for a single array
  DType dtype;
  std::vector<std::uint64_t> shape;
  const void* data = nullptr;
};

}  // namespace weir::tensor
