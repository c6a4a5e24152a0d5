// The gate of one direction of a connection: shared by many threads for kernel calls, or held by one thread
// for the ring, whose signal handlers wait meanwhile (calls/held_signals.hpp). Forked children share its
// memory. If a holder is killed, the gate stays shut: exclusive() gives up, and the connection is reset.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "sockets/calls/held_signals.hpp"

namespace weir::sockets {

using GateWord = std::atomic<std::int32_t>;  // number of sharers; -1: one thread has it alone

class Gate {
 public:
  explicit Gate(GateWord& word) : word_(word) {}
  ~Gate() { release(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  bool try_exclusive() {
    std::int32_t free = 0;
    enter_section();
    if (word_.compare_exchange_strong(free, -1, std::memory_order_acquire))
      mine_ = -1;
    else
      leave_section();
    return mine_ == -1;
  }
  // Waits, in growing naps, for up to about ten seconds.
  bool exclusive() {
    for (int tries = 0; !try_exclusive() && tries < 100'000; ++tries) wait(tries);
    return mine_ == -1;
  }
  bool share() {
    std::int32_t now = word_.load(std::memory_order_relaxed);
    if (now < 0 || !word_.compare_exchange_strong(now, now + 1, std::memory_order_acquire)) return false;
    mine_ = 1;
    return true;
  }
  void release() {
    const int mine = mine_;
    mine_ = 0;
    if (mine == 1) word_.fetch_sub(1, std::memory_order_release);
    if (mine != -1) return;
    word_.store(0, std::memory_order_release);
    leave_section();
  }

 private:
  static void wait(int tries) {
    if (tries < 64)
      __builtin_ia32_pause();
    else if (tries < 256)
      ::sched_yield();
    else
      ::usleep(50);
  }

  GateWord& word_;
  int mine_ = 0;
};

}  // namespace weir::sockets
