#include "kv/text/heap.hpp"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <new>

// GCC announces sanitizers by macros, clang by features.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEIR_SANITIZERS_HEAP
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WEIR_SANITIZERS_HEAP
#endif
#endif

#if defined(WEIR_SANITIZERS_HEAP)
// GCC comes with the sanitizers' allocator but without its header.
extern "C" std::size_t
__sanitizer_get_current_allocated_bytes();  // NOLINT(bugprone-reserved-identifier): its name
#endif

namespace weir::kv {
namespace {

void* or_bad_alloc(void* at) {
  if (at == nullptr) [[unlikely]]
    throw std::bad_alloc();
  return at;
}

}  // namespace

std::size_t heap_size(const void* piece) {
  return ::malloc_usable_size(const_cast<void*>(piece));  // NOLINT: it only reads
}

std::size_t heap_size(const std::string& text) {
  static const std::size_t inside = std::string().capacity();
  return text.capacity() > inside ? heap_size(static_cast<const void*>(text.data())) : 0;
}

#if defined(WEIR_SANITIZERS_HEAP)

std::size_t used_memory() { return __sanitizer_get_current_allocated_bytes(); }
void* allocate(std::size_t bytes) { return or_bad_alloc(std::malloc(bytes)); }
void* resized(void* at, std::size_t bytes) { return or_bad_alloc(std::realloc(at, bytes)); }
void free_allocated(void* at) noexcept { std::free(at); }
void* allocate_zeroed(std::size_t bytes) { return or_bad_alloc(std::calloc(1, bytes)); }
void free_zeroed(void* at) noexcept { std::free(at); }

}  // namespace weir::kv

#else

namespace {

// Each thread has a count of its own, so that counting needs no locked instruction. When all but the last are
// taken, further threads share the last. A count is negative if the thread frees other threads' memory.
struct alignas(64) Count {
  std::atomic<std::ptrdiff_t> bytes{0};
};
constinit std::array<Count, 64> counts;
constinit std::atomic<unsigned> threads{0};
constinit thread_local Count* own_count = nullptr;

void count(std::ptrdiff_t change) {
  if (own_count == nullptr)
    own_count =
        &counts[std::min<std::size_t>(threads.fetch_add(1, std::memory_order_relaxed), counts.size() - 1)];
  std::atomic<std::ptrdiff_t>& bytes = own_count->bytes;
  if (own_count == &counts.back())
    bytes.fetch_add(change, std::memory_order_relaxed);
  else
    bytes.store(bytes.load(std::memory_order_relaxed) + change, std::memory_order_relaxed);
}

// The size to which the heap rounded it up, as Redis counts. glibc needs eight more bytes in front of it.
std::ptrdiff_t footprint(void* at) { return static_cast<std::ptrdiff_t>(malloc_usable_size(at)); }

void* counted(void* at) {
  count(footprint(at));
  return at;
}

void free_counted(void* at) noexcept {
  if (at == nullptr) return;
  count(-footprint(at));
  std::free(at);
}

// Fails as the standard demands of operator new ([new.delete.single]).
template <class Allocate>
void* counted_or_bad_alloc(Allocate allocate) {
  for (;;) {
    if (void* const at = allocate(); at != nullptr) [[likely]]
      return counted(at);
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

template <class Allocate>
void* null_for_bad_alloc(Allocate allocate) noexcept {
  try {
    return allocate();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

std::size_t used_memory() {
  std::ptrdiff_t total = 0;
  const std::size_t taken = std::min<std::size_t>(threads.load(std::memory_order_relaxed), counts.size());
  for (std::size_t i = 0; i < taken; ++i) total += counts[i].bytes.load(std::memory_order_relaxed);
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(total, 0));
}

void* allocate(std::size_t bytes) { return counted(or_bad_alloc(std::malloc(bytes))); }
void* resized(void* at, std::size_t bytes) {
  const std::ptrdiff_t before = footprint(at);
  void* const grown = or_bad_alloc(std::realloc(at, bytes));
  count(footprint(grown) - before);
  return grown;
}
void free_allocated(void* at) noexcept { free_counted(at); }

void* allocate_zeroed(std::size_t bytes) { return counted(or_bad_alloc(std::calloc(1, bytes))); }
void free_zeroed(void* at) noexcept { free_counted(at); }

}  // namespace weir::kv

// All forms that the standard has: a heap that is linked, as jemalloc is, defines them as well, and what one
// form counts another must take back. The first two allocate for the rest.
void* operator new(std::size_t bytes) {
  return weir::kv::counted_or_bad_alloc([bytes] { return std::malloc(bytes != 0 ? bytes : 1); });
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto align = static_cast<std::size_t>(alignment);
  const std::size_t whole = (std::max<std::size_t>(bytes, 1) + align - 1) / align * align;
  return weir::kv::counted_or_bad_alloc([=] { return std::aligned_alloc(align, whole); });
}

void* operator new[](std::size_t bytes) { return ::operator new(bytes); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return ::operator new(bytes, alignment);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return weir::kv::null_for_bad_alloc([bytes] { return ::operator new(bytes); });
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return weir::kv::null_for_bad_alloc([=] { return ::operator new(bytes, alignment); });
}
void* operator new[](std::size_t bytes, const std::nothrow_t& nothrow) noexcept {
  return ::operator new(bytes, nothrow);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t& nothrow) noexcept {
  return ::operator new(bytes, alignment, nothrow);
}

void operator delete(void* at) noexcept { weir::kv::free_counted(at); }
void operator delete(void* at, std::size_t) noexcept { weir::kv::free_counted(at); }
void operator delete(void* at, std::align_val_t) noexcept { weir::kv::free_counted(at); }
void operator delete(void* at, std::size_t, std::align_val_t) noexcept { weir::kv::free_counted(at); }
void operator delete(void* at, const std::nothrow_t&) noexcept { weir::kv::free_counted(at); }
void operator delete(void* at, std::align_val_t, const std::nothrow_t&) noexcept {
  weir::kv::free_counted(at);
}
void operator delete[](void* at) noexcept { weir::kv::free_counted(at); }
void operator delete[](void* at, std::size_t) noexcept { weir::kv::free_counted(at); }
void operator delete[](void* at, std::align_val_t) noexcept { weir::kv::free_counted(at); }
void operator delete[](void* at, std::size_t, std::align_val_t) noexcept { weir::kv::free_counted(at); }
void operator delete[](void* at, const std::nothrow_t&) noexcept { weir::kv::free_counted(at); }
void operator delete[](void* at, std::align_val_t, const std::nothrow_t&) noexcept {
  weir::kv::free_counted(at);
}

#endif
