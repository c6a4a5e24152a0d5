// Proves that a thread spins on memory: that its whole state recurs, so that it can do nothing else until
// memory changes from outside.
//
// The thread is stopped (ptrace) and stepped. If its registers, flags and vector registers recur after P
// steps, one more period shows whether all memory that it may write does, too. Virtual time stands meanwhile,
// so nothing else changes memory. A loop that counts, in a register or in memory, is not proved: it computes.
//
// Linux on x86-64. Single-threaded.
#pragma once

#include <sys/types.h>

#include <memory>
#include <utility>

#include "twin/stopped_thread.hpp"

namespace weir::twin {

class MemorySpin {
 public:
  // nullptr: it was not proved, and runs on. Otherwise the thread is stopped until the object is destroyed.
  static std::unique_ptr<MemorySpin> prove(pid_t process, pid_t thread);

  // Instructions in a turn of the loop.
  unsigned period() const { return period_; }

 private:
  MemorySpin(std::unique_ptr<StoppedThread> stopped, unsigned period)
      : stopped_(std::move(stopped)), period_(period) {}
  std::unique_ptr<StoppedThread> stopped_;
  unsigned period_;
};

}  // namespace weir::twin
