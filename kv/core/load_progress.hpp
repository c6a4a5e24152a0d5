// How far a load of the data has come, and what the last one brought.
#pragma once

#include <cstdint>

namespace weir::kv {

// Progress, for INFO.
struct LoadProgress {
  std::int64_t began_ms = 0;
  std::uint64_t bytes_all = 0;
  std::uint64_t bytes_done = 0;
};
// The result of the last load.
struct Loaded {
  std::uint64_t keys = 0;
  std::uint64_t expired = 0;  // left out
};

}  // namespace weir::kv
