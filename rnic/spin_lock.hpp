// A lock inside one process for critical sections of tens of nanoseconds.
//
// Spins about 100 tries, then yields: on a machine with two cores the holder may be waiting for our CPU, and
// a pure spin would cost a scheduler slice. Never shared between processes.
#pragma once

#include <sched.h>

#include <atomic>

namespace weir::rnic {

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

class SpinLock {
 public:
  void lock() {
    // acquire: pairs with unlock(); without it the next holder could read the last one's half-written ring.
    while (held_.exchange(true, std::memory_order_acquire)) wait_until_free();
  }
  bool try_lock() {
    return !held_.load(std::memory_order_relaxed) && !held_.exchange(true, std::memory_order_acquire);
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  void wait_until_free() {
    for (int tries = 0; held_.load(std::memory_order_relaxed); ++tries) {
      if (tries < 100)
        cpu_relax();
      else
        sched_yield();
    }
  }
  std::atomic<bool> held_{false};
};

}  // namespace weir::rnic
