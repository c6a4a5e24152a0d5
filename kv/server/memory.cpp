#include "kv/server/memory.hpp"

#include <malloc.h>
#include <unistd.h>

#include <cstdio>

// GCC says so by macros, clang by features.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEIR_SANITIZERS_HEAP
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WEIR_SANITIZERS_HEAP
#endif
#endif

#if defined(WEIR_SANITIZERS_HEAP)
// GCC ships the sanitizers' allocator without its header.
extern "C" std::size_t
__sanitizer_get_current_allocated_bytes();  // NOLINT(bugprone-reserved-identifier): its name
#endif

namespace weir::kv {

std::size_t used_memory() {
#if defined(WEIR_SANITIZERS_HEAP)
  return __sanitizer_get_current_allocated_bytes();
#else
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#endif
}

std::size_t resident_memory() {
  std::size_t total = 0;
  std::size_t resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%zu %zu", &total, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t system_memory() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// glibc gives large blocks back at once until it has seen larger ones freed, and so learns these same limits
// only by and by, depending on the order of events (mallopt(3), M_MMAP_THRESHOLD).
void keep_freed_memory() {
#if !defined(WEIR_SANITIZERS_HEAP)
  constexpr int largest_in_heap = 32 << 20;  // the most that glibc allows
  mallopt(M_MMAP_THRESHOLD, largest_in_heap);
  mallopt(M_TRIM_THRESHOLD, 2 * largest_in_heap);
#endif
}

void give_back_memory() {
#if !defined(WEIR_SANITIZERS_HEAP)
  malloc_trim(0);
#endif
}

}  // namespace weir::kv
