// The C library's function that one of ours hides.
#pragma once

#include <dlfcn.h>

namespace weir::preload {

template <class Call>
Call* next_call(const char* name) {
  return reinterpret_cast<Call*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace weir::preload

// Declares `call`: the function of that type and name that ours hides, looked up once.
#define WEIR_NEXT(type, name) static auto* const call = weir::preload::next_call<type>(#name)
