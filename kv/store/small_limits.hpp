// Up to how many entries of how many bytes a collection stays small.
#pragma once

#include <cstddef>

namespace weir::kv {

struct SmallLimits {
  std::size_t entries;
  std::size_t bytes;
};

}  // namespace weir::kv
