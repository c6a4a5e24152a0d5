// The CPU that the calling thread runs on, read in a nanosecond: the kernel keeps the number in a word of the
// thread (rseq(2); glibc 2.35 and later registers it).
#pragma once

#include <cstdint>

#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

namespace weir::rnic {

// Numbered from 1. 0: not known.
using Cpu = std::uint32_t;

inline Cpu current_cpu() {
#if defined(RSEQ_SIG)
  const auto* area = reinterpret_cast<const volatile struct rseq*>(
      static_cast<const char*>(__builtin_thread_pointer()) + __rseq_offset);
  const std::uint32_t cpu = area->cpu_id;
  return cpu < 0xffff'0000 ? cpu + 1 : 0;  // not registered: -1 or -2
#else
  return 0;
#endif
}

}  // namespace weir::rnic
