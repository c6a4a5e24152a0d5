#include "verbs/check/call_site.hpp"

#include <pthread.h>

namespace weir::check {

std::uintptr_t stack_end() {
  thread_local const std::uintptr_t end = [] {
    pthread_attr_t attributes;
    void* begin = nullptr;
    std::size_t bytes = 0;
    if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return std::uintptr_t{0};
    ::pthread_attr_getstack(&attributes, &begin, &bytes);
    ::pthread_attr_destroy(&attributes);
    return reinterpret_cast<std::uintptr_t>(begin) + bytes;
  }();
  return end;
}

}  // namespace weir::check
