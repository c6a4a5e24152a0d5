#include "tests/nccl/counted_new.hpp"

#include <cstdlib>
#include <new>

namespace {
thread_local bool counting = false;
thread_local int allocations = 0;
}  // namespace

void* operator new(std::size_t bytes) {
  if (counting) ++allocations;
  if (void* memory = std::malloc(bytes != 0 ? bytes : 1); memory != nullptr) return memory;
  throw std::bad_alloc();
}
// A sanitizer has its own version, and would not recognise our matching delete.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  if (counting) ++allocations;
  return std::malloc(bytes != 0 ? bytes : 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace weir::nccl::testing_support {

void start_counting() {
  allocations = 0;
  counting = true;
}

int stop_counting() {
  counting = false;
  return allocations;
}

}  // namespace weir::nccl::testing_support
