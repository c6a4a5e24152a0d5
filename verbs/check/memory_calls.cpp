// free() and munmap(), in front of the C library's.
#include <malloc.h>
#include <sys/mman.h>

#include <cstdlib>

#include "verbs/check/checks.hpp"
#include "verbs/check/inside.hpp"
#include "verbs/check/next_calls.hpp"

using namespace weir::check;

extern "C" {

void __libc_free(void*);

void free(void* memory) noexcept {
  // Before its first region, a program has nothing to lose, and looking up the next free() allocates.
  if (memory == nullptr || Inside::already() || !objects().has_regions()) return __libc_free(memory);
  const Inside inside;
  about_to_free(memory, ::malloc_usable_size(memory), "free");
  WEIR_NEXT(free);
  call(memory);
}

int munmap(void* memory, size_t bytes) noexcept {
  WEIR_NEXT(munmap);
  if (Inside::already() || bytes == 0 || !objects().has_regions()) return call(memory, bytes);
  const Inside inside;
  about_to_free(memory, bytes, "munmap");
  return call(memory, bytes);
}

}  // extern "C"
