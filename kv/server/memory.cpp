#include "kv/server/memory.hpp"

#include <malloc.h>
#include <unistd.h>

#include <cstdio>

namespace weir::kv {

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
  constexpr int largest_in_heap = 32 << 20;  // the most that glibc allows
  mallopt(M_MMAP_THRESHOLD, largest_in_heap);
  mallopt(M_TRIM_THRESHOLD, 2 * largest_in_heap);
}

void give_back_memory() { malloc_trim(0); }

}  // namespace weir::kv
