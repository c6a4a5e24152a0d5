// Arrays as numpy's files (.npy, format 1.0:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tensor/arrays/metadata.hpp"

namespace weir::command {

// The file's header; the array's bytes follow it in C order. A type without a numpy dtype
// becomes void of the same size.
std::string npy_header(const tensor::DType& dtype, std::span<const std::uint64_t> shape);

}  // namespace weir::command
