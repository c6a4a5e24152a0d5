// For the body of a loop that spins: tells the core that it waits, so that its sibling gets more of it.
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
