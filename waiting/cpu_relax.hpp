// For the body of a spin loop: tells the core that it is waiting, so its sibling hyperthread gets more of the
// core.
#pragma once

namespace weir::waiting {

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace weir::waiting
