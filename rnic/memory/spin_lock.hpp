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
    // acquire: pairs with unlock(); without it the next holder could read the previous holder's half-written
    // ring.
    while (held_.exchange(true, std::memory_order_acquire)) wait_until_free();
  }
  // seq_cst: pairs with unlock_and_look().
  bool try_lock() {
    return !held_.load(std::memory_order_seq_cst) && !held_.exchange(true, std::memory_order_seq_cst);
  }
  // Gives up after some tries and yields: for a thread that has another way, or that holds a lock for which
  // this one's holder could wait.
  bool lock_soon() {
    constexpr int busy_tries = 200, yielding_tries = 50;
    for (int tries = 0; tries < busy_tries + yielding_tries; ++tries) {
      if (try_lock()) return true;
      if (tries < busy_tries)
        cpu_relax();
      else
        sched_yield();
    }
    return false;
  }
  void unlock() { held_.store(false, std::memory_order_release); }
  // For a holder that afterwards checks whether a thread that failed try_lock() left it work. That thread
  // stores its request and then tries the lock; we free the lock and then load the request. Either it gets
  // the lock or we see the request.
  void unlock_and_look() { held_.exchange(false, std::memory_order_seq_cst); }

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
