// Pins each end to its own core, for the benchmarks of two processes.
#pragma once

#include <sched.h>

namespace weir::bench {

inline void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace weir::bench
