// The call that brought us here, for the data path, where a walk up the stack would cost more than the post.
#pragma once

#include <cstdint>

#include "verbs/check/place.hpp"

namespace weir::check {

struct CallSite {
  void* caller = nullptr;
  // The caller's caller, if the caller keeps a frame pointer, and anything else if not. The inline functions
  // of <infiniband/verbs.h> are called like others where nothing is optimised, and there frame pointers are
  // kept.
  void* beyond = nullptr;

  Place place() const { return {{caller, beyond}, Place::Depth::call}; }
};

// The last address of this thread's stack.
std::uintptr_t stack_end();

// `frame` is the frame address of a function that was called by the program.
inline CallSite call_site(void* return_address, void* frame) {
  const auto own = reinterpret_cast<std::uintptr_t>(frame);
  const auto of_caller = *static_cast<const std::uintptr_t*>(frame);
  const bool sane =
      of_caller > own && of_caller % sizeof(void*) == 0 && of_caller + 2 * sizeof(void*) < stack_end();
  return {return_address, sane ? reinterpret_cast<void* const*>(of_caller)[1] : nullptr};
}

}  // namespace weir::check

#define WEIR_CALL_SITE weir::check::call_site(__builtin_return_address(0), __builtin_frame_address(0))
