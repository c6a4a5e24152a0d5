// Which server the tests that meet redis-server run: Debian's, or the one that WEIR_REDIS_SERVER names, which
// takes its options (such as valkey-server).
#pragma once

#include <cstdlib>
#include <string>

namespace weir::kv::testing {

// Newer servers choose other encodings and write some numbers with fewer digits.
inline bool is_redis_7_0() { return std::getenv("WEIR_REDIS_SERVER") == nullptr; }

inline std::string redis_program() {
  return is_redis_7_0() ? "redis-server" : std::getenv("WEIR_REDIS_SERVER");
}

}  // namespace weir::kv::testing
