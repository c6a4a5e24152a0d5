// malloc and its family, preloaded by `weir run --share-memory`.
//
// Large blocks and those aligned to pages, which is what programs register, come from the page heap;
// everything else goes on to the C library under the names it exports for that (dlsym would itself allocate).
// Errors are as malloc(3) and posix_memalign(3) say. When the page heap cannot be made or is full, the C
// library serves all.
#include <dlfcn.h>
#include <pthread.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "verbs/heap/page_heap.hpp"

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void __libc_free(void*);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace weir::heap {
namespace {

constexpr std::size_t heap_bytes = 16ull << 30;  // address space
constexpr std::size_t large_bytes = 64 * 1024;

// Constant-initialised and never destroyed: allocation goes on before constructors and after destructors.
constinit PageHeap pages;
constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
constinit pthread_once_t once = PTHREAD_ONCE_INIT;
constinit bool opening = false;  // under `once`: what making the heap allocates is not for it

void lock() { pthread_mutex_lock(&mutex); }
void unlock() { pthread_mutex_unlock(&mutex); }
void unlock_in_child() {
  pages.leave_to_parent();
  unlock();
}

void open_heap() {
  opening = true;
  pages.open(heap_bytes);
  // A child must not find the lock held by a thread it does not have.
  pthread_atfork(lock, unlock, unlock_in_child);
  opening = false;
}

void* take(std::size_t bytes) {
  if (opening) return nullptr;
  pthread_once(&once, open_heap);
  lock();
  void* const at = pages.allocate(bytes);
  unlock();
  return at;
}

bool ours(const void* at) { return pages.holds(at); }

void give(void* at) {
  const int kept = errno;  // free() leaves errno alone (POSIX 2024)
  lock();
  pages.free(at);
  unlock();
  errno = kept;
}

std::size_t capacity(const void* at) {
  lock();
  const std::size_t bytes = pages.capacity(at);
  unlock();
  return bytes;
}

bool is_large(std::size_t bytes) { return bytes >= large_bytes; }

void* aligned(std::size_t alignment, std::size_t bytes) {
  if (alignment >= page_bytes || is_large(bytes)) {
    // A block is aligned to its size.
    if (void* const at = take(bytes < alignment ? alignment : bytes)) return at;
  }
  return __libc_memalign(alignment, bytes);
}

}  // namespace
}  // namespace weir::heap

using namespace weir::heap;

extern "C" {

void* malloc(std::size_t bytes) noexcept {
  if (is_large(bytes))
    if (void* const at = take(bytes)) return at;
  return __libc_malloc(bytes);
}

void* calloc(std::size_t count, std::size_t each) noexcept {
  std::size_t bytes = 0;
  if (!__builtin_mul_overflow(count, each, &bytes) && is_large(bytes))
    if (void* const at = take(bytes)) return at;  // fresh pages are zero
  return __libc_calloc(count, each);
}

void free(void* at) noexcept { ours(at) ? give(at) : __libc_free(at); }

void* realloc(void* at, std::size_t bytes) noexcept {
  if (at == nullptr) return malloc(bytes);
  if (!ours(at)) return __libc_realloc(at, bytes);
  if (bytes == 0) return free(at), nullptr;
  const std::size_t before = capacity(at);
  if (bytes <= before && bytes > before / 2) return at;
  void* const moved = malloc(bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, at, before < bytes ? before : bytes);
  free(at);
  return moved;
}

void* reallocarray(void* at, std::size_t count, std::size_t each) noexcept {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, each, &bytes)) return errno = ENOMEM, nullptr;
  return realloc(at, bytes);
}

void* memalign(std::size_t alignment, std::size_t bytes) noexcept { return aligned(alignment, bytes); }
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept { return aligned(alignment, bytes); }

int posix_memalign(void** at, std::size_t alignment, std::size_t bytes) noexcept {
  if (alignment % sizeof(void*) != 0 || !std::has_single_bit(alignment)) return EINVAL;
  const int kept = errno;
  void* const got = aligned(alignment, bytes);
  errno = kept;
  if (got == nullptr) return ENOMEM;
  *at = got;
  return 0;
}

void* valloc(std::size_t bytes) noexcept { return aligned(page_bytes, bytes); }
void* pvalloc(std::size_t bytes) noexcept {
  return aligned(page_bytes, (bytes + page_bytes - 1) / page_bytes * page_bytes);
}

std::size_t malloc_usable_size(void* at) noexcept {
  if (at == nullptr) return 0;
  if (ours(at)) return capacity(at);
  using Usable = std::size_t (*)(void*);
  static const auto next = reinterpret_cast<Usable>(dlsym(RTLD_NEXT, "malloc_usable_size"));
  return next != nullptr ? next(at) : 0;
}

}  // extern "C"
