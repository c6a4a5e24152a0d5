#include "rpc/retry.hpp"

#include <algorithm>

namespace weir::rpc {

bool worth_retrying(Errc code, bool idempotent) {
  switch (code) {
    case Errc::overloaded:
    case Errc::draining:
    case Errc::unreachable:
      return true;  // the call did not run
    case Errc::closed:
    case Errc::connection_lost:
      return idempotent;
    default:
      return false;
  }
}

std::chrono::microseconds wait_before(int attempt, const RetryOptions& options, std::uint64_t random) {
  std::int64_t wait = options.first_wait.count();
  for (int i = 2; i < attempt && wait < options.max_wait.count(); ++i) wait *= 2;
  wait = std::min<std::int64_t>(wait, options.max_wait.count());
  const std::int64_t half = wait / 2;
  return std::chrono::microseconds(
      half +
      (half > 0 ? static_cast<std::int64_t>(random % static_cast<std::uint64_t>(wait - half + 1)) : 0));
}

}  // namespace weir::rpc
