// Pages in which a test may make holes that stay holes: far below the addresses that the
// kernel chooses for mappings. Elsewhere a thread's stack or a sanitizer's next piece of
// memory would fill the hole at once.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace weir::verbs_test {

struct LonePages {
  static constexpr std::size_t page = 4096, bytes = 4 * page;

  explicit LonePages(int protection = PROT_READ | PROT_WRITE)
      : data(static_cast<std::uint8_t*>(::mmap(reinterpret_cast<void*>(0x2000'0000'0000), bytes, protection,
                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~LonePages() { ::munmap(data, bytes); }
  LonePages(const LonePages&) = delete;
  LonePages& operator=(const LonePages&) = delete;

  void unmap_page(std::size_t which) const { ::munmap(data + which * page, page); }

  std::uint8_t* data;
};

}  // namespace weir::verbs_test
