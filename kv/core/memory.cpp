#include "kv/core/memory.hpp"

#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

// jemalloc's functions, if the program is linked with it (jemalloc(3)).
extern "C" [[gnu::weak]] int mallctl(const char* name, void* old, std::size_t* old_size, void* fresh,
                                     std::size_t fresh_size);
extern "C" [[gnu::weak]] void malloc_stats_print(void (*write)(void*, const char*), void* to,
                                                 const char* options);

namespace weir::kv {

std::string allocator_name() {
  const char* version = nullptr;
  std::size_t size = sizeof version;
  if (mallctl == nullptr || mallctl("version", &version, &size, nullptr, 0) != 0) return "libc";
  return "jemalloc-" + std::string(version, std::strcspn(version, "-"));  // the rest names a commit
}

std::string allocator_report() {
  std::string text;
  if (malloc_stats_print != nullptr) {
    const auto add = [](void* to, const char* piece) { static_cast<std::string*>(to)->append(piece); };
    malloc_stats_print(add, &text, nullptr);
    return text;
  }
  char* report = nullptr;
  std::size_t size = 0;
  if (std::FILE* stream = open_memstream(&report, &size)) {
    malloc_info(0, stream);
    std::fclose(stream);
    text.assign(report, size);
    std::free(report);
  }
  return text;
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

// jemalloc does this by itself. glibc returns large blocks at once until it has seen larger ones
// freed. So it reaches these limits only gradually, depending on the order of events
// (mallopt(3), M_MMAP_THRESHOLD).
void keep_freed_memory() {
  constexpr int largest_in_heap = 32 << 20;  // the maximum of glibc
  mallopt(M_MMAP_THRESHOLD, largest_in_heap);
  mallopt(M_TRIM_THRESHOLD, 2 * largest_in_heap);
}

void give_back_memory() {
  if (mallctl != nullptr) mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);  // 4096: all arenas
  malloc_trim(0);
}

}  // namespace weir::kv
