// When to call again, and how long to wait before. Pure: time and chance are passed in.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "rpc/error.hpp"

namespace weir::rpc {

// Marks a function whose calls may run twice, where both ends see it:
//   template <> inline constexpr bool weir::rpc::idempotent<shop::find> = true;
template <auto F>
inline constexpr bool idempotent = false;

struct RetryOptions {
  int attempts = 3;  // the first included; 1: never again
  std::chrono::microseconds first_wait{10'000};
  std::chrono::microseconds max_wait{1'000'000};
  // Limits the retries of attempts that a server received and did not serve: all calls of a pool together may
  // retry this share of their number, plus a reserve, which each call refills by the share. So overloaded
  // servers get at most 1 + budget_share times the calls, not `attempts` times as many.
  double budget_share = 0.2;
  double budget_reserve = 100;
};

// How many attempts may be retried at this moment. Threading: one thread.
class RetryBudget {
 public:
  explicit RetryBudget(const RetryOptions& options)
      : share_(options.budget_share), most_(options.budget_reserve), left_(options.budget_reserve) {}
  // A call was made.
  void called() { left_ = std::min(std::max(most_, 1.0), left_ + share_); }
  // False: none.
  bool take() {
    if (left_ < 1) return false;
    left_ -= 1;
    return true;
  }

 private:
  double share_, most_, left_;
};

// Whether another attempt after such an end puts more load on servers. A draining server sends its callers
// elsewhere.
constexpr bool costs_budget(Errc code) { return code != Errc::draining; }

// Whether the same call might succeed elsewhere or later, and may be repeated. A call that may have run is
// repeated only if it may run twice.
bool worth_retrying(Errc code, bool idempotent);

// Before attempt 2, 3, ...: half of first_wait * 2^(attempt - 2), and a random part of the other half, so
// that callers that failed together do not come back together.
std::chrono::microseconds wait_before(int attempt, const RetryOptions& options, std::uint64_t random);

}  // namespace weir::rpc
