// Sleeping on a word of memory that processes share (futex(2)): the one way to sleep and wake that needs no
// descriptor to be passed, and that works whatever namespaces the two are in.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>

namespace weir::link {

// Returns when woken, when the word is not `seen` (any more), at the limit, or for no reason at all.
inline void sleep_on(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
                     std::chrono::nanoseconds limit) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec relative{.tv_sec = seconds.count(), .tv_nsec = (limit - seconds).count()};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &relative, nullptr, 0);
}

inline void wake_sleepers(const std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace weir::link
