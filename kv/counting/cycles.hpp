// A clock cheap enough to read around every command: the processor's cycle counter if it has one.
#pragma once

#include <chrono>
#include <cstdint>

namespace weir::kv {

inline std::uint64_t cycles_now() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// How many cycles a microsecond has, measured over the time since construction.
class CycleRate {
 public:
  double per_us() const {
    const auto elapsed = std::chrono::steady_clock::now() - start_;
    const double us = std::chrono::duration<double, std::micro>(elapsed).count();
    return us < 1 ? 1 : static_cast<double>(cycles_now() - cycles_) / us;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::uint64_t cycles_ = cycles_now();
};

}  // namespace weir::kv
