// The dynamic threshold of a shared buffer in closed form: a queue may hold alpha times the free part.
#pragma once

#include <cmath>
#include <cstdint>

namespace weir::fabric {

// Switches support 11 values of alpha, 2^-7 to 2^3; SONiC's dynamic_th is the exponent.
inline constexpr int least_dynamic_th = -7;
inline constexpr int most_dynamic_th = 3;
inline constexpr int alpha_steps = most_dynamic_th - least_dynamic_th + 1;

inline double alpha_of(int dynamic_th) { return std::ldexp(1.0, dynamic_th); }

// The shares of the pool that each of n equally congested queues gets, and that stay free.
inline double share_of_each(double alpha, double n) { return alpha / (1 + n * alpha); }
inline double share_free(double alpha, double n) { return 1 / (1 + n * alpha); }

inline std::uint64_t limit_of_each(std::uint64_t pool_bytes, double alpha, double n) {
  return static_cast<std::uint64_t>(static_cast<double>(pool_bytes) * share_of_each(alpha, n));
}

// The largest alpha that leaves `free_share` of the pool free with n congested queues; the
// smallest if no alpha does.
inline int choose_dynamic_th(double n, double free_share) {
  for (int th = most_dynamic_th; th > least_dynamic_th; --th)
    if (share_free(alpha_of(th), n) >= free_share) return th;
  return least_dynamic_th;
}

}  // namespace weir::fabric
