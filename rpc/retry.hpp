// When to call again, and how long to wait before. Pure: time and chance are passed in.
#pragma once

#include <chrono>
#include <cstdint>

#include "rpc/error.hpp"

namespace weir::rpc {

// For a call that may run twice, said where both ends see it:
//   template <> inline constexpr bool weir::rpc::idempotent<shop::find> = true;
template <auto F>
inline constexpr bool idempotent = false;

struct RetryOptions {
  int attempts = 3;  // the first included; 1: never again
  std::chrono::microseconds first_wait{10'000};
  std::chrono::microseconds most_wait{1'000'000};
};

// Might the same call go well elsewhere or later, and may it be made again? A call that may have run is made
// again only if it may run twice.
bool worth_retrying(Errc code, bool idempotent);

// Before attempt 2, 3, ...: half of first_wait * 2^(attempt - 2), and a random part of the other half, so
// that callers that failed together do not come back together.
std::chrono::microseconds wait_before(int attempt, const RetryOptions& options, std::uint64_t random);

}  // namespace weir::rpc
