// free() and munmap(), in front of the C library's or of another allocator's (jemalloc).
//
// An allocator calls munmap() while it holds its own locks, also from its constructor, and whatever we do
// there must not allocate. What it unmaps was freed before, so such calls pass unseen; free() has seen it.
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "verbs/check/checks.hpp"
#include "verbs/check/inside.hpp"
#include "verbs/check/next_calls.hpp"

using namespace weir::check;

namespace {

// The executable part of the module that has malloc(); empty: not looked up yet.
std::atomic<std::uint64_t> allocator_begin = 0, allocator_end = 0;

int find_allocator(dl_phdr_info* module, std::size_t, void* of_malloc) {
  const auto call = reinterpret_cast<std::uint64_t>(of_malloc);
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = module->dlpi_phdr[i];
    const std::uint64_t begin = module->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    if (call < begin || call - begin >= part.p_memsz) continue;
    allocator_begin.store(begin, std::memory_order_relaxed);
    allocator_end.store(begin + part.p_memsz, std::memory_order_relaxed);
    return 1;
  }
  return 0;
}

bool in_allocator(const void* caller) {
  const auto at = reinterpret_cast<std::uint64_t>(caller);
  return at >= allocator_begin.load(std::memory_order_relaxed) &&
         at < allocator_end.load(std::memory_order_relaxed);
}

// The function behind ours. Looked up without a lock or an allocation, because the first call comes from the
// constructor of an allocator.
template <class Call>
class Next {
 public:
  explicit constexpr Next(const char* name) : name_(name) {}
  // nullptr: this thread is looking it up just now.
  Call* get() {
    if (Call* const known = call_.load(std::memory_order_relaxed)) return known;
    if (looks_) return nullptr;
    looks_ = true;
    Call* const found = next_call<Call>(name_);
    looks_ = false;
    call_.store(found, std::memory_order_relaxed);
    return found;
  }

 private:
  [[gnu::tls_model("initial-exec")]] static inline thread_local bool looks_ = false;
  const char* name_;
  std::atomic<Call*> call_ = nullptr;
};

constinit Next<void(void*) noexcept> next_free("free");
constinit Next<int(void*, std::size_t) noexcept> next_munmap("munmap");

}  // namespace

namespace weir::check {

void note_allocator() {
  if (allocator_begin.load(std::memory_order_relaxed) == 0)
    ::dl_iterate_phdr(find_allocator, reinterpret_cast<void*>(&::malloc));
}

}  // namespace weir::check

extern "C" {

void free(void* memory) noexcept {
  auto* const call = next_free.get();
  if (memory == nullptr || call == nullptr) return;
  // Before its first region, a program has nothing to lose.
  if (Inside::already() || !has_regions()) return call(memory);
  const Inside inside;
  about_to_free(memory, ::malloc_usable_size(memory), "free");
  call(memory);
}

int munmap(void* memory, size_t bytes) noexcept {
  auto* const call = next_munmap.get();
  if (call == nullptr) return static_cast<int>(::syscall(SYS_munmap, memory, bytes));
  if (Inside::already() || bytes == 0 || !has_regions() || in_allocator(__builtin_return_address(0)))
    return call(memory, bytes);
  const Inside inside;
  about_to_free(memory, bytes, "munmap");
  return call(memory, bytes);
}

}  // extern "C"
