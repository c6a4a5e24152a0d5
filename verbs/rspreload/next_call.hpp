// The C library's function behind one of ours.
#pragma once

#include <dlfcn.h>

namespace weir::rspreload {

template <class Call>
Call* next_call(const char* name) {
  return reinterpret_cast<Call*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace weir::rspreload

// Declares `call`, the function of that type and name that ours stands in front of, looked up once.
#define WEIR_NEXT(type, name) static auto* const call = weir::rspreload::next_call<type>(#name)
// Whether the call comes from the program, and not from the RDMA libraries on its behalf.
#define WEIR_OF_PROGRAM() (!weir::rspreload::is_of_rdma_libraries(__builtin_return_address(0)))
