// Adds one array to another, element by element: floats of 16 (both kinds), 32 and 64 bits, and integers,
// which wrap. Halves are added as floats and rounded to the nearest, ties to even. Pure.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/arrays/dtype.hpp"

namespace weir::tensor {

// Adds `from` to `to`: equally many whole elements, at any alignment.
using Adder = void (*)(std::span<std::byte> to, std::span<const std::byte> from);

// Null if arrays of that type cannot be added.
Adder adder_of(const DType& dtype);

}  // namespace weir::tensor
