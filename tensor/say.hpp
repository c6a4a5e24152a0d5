// Writes one line for the program's operator: what changed by itself, and why.
#pragma once

#include <cstdio>
#include <string_view>

namespace weir::tensor {

inline void say_on_stderr(std::string_view line) {
  std::fprintf(stderr, "weir_tensor: %.*s\n", static_cast<int>(line.size()), line.data());
}

}  // namespace weir::tensor
