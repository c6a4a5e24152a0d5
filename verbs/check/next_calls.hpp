// The library behind the checker: its exported calls, and the operations that its contexts came with.
#pragma once

#include <dlfcn.h>
#include <infiniband/verbs.h>

namespace weir::check {

template <class Call>
Call* next_call(const char* name) {
  return reinterpret_cast<Call*>(::dlsym(RTLD_NEXT, name));
}

// A context's operations before the checker put its own there.
struct ContextCalls {
  ibv_context_ops ops{};
  ibv_qp* (*create_qp_ex)(ibv_context*, ibv_qp_init_attr_ex*) = nullptr;
  ibv_cq_ex* (*create_cq_ex)(ibv_context*, ibv_cq_init_attr_ex*) = nullptr;
  ibv_srq* (*create_srq_ex)(ibv_context*, ibv_srq_init_attr_ex*) = nullptr;
};
// nullptr: a context that the checker has not seen.
const ContextCalls* next_of(const ibv_context*);
// Puts the checked operations into a context that was opened just now.
void check_context(ibv_context*);
void uncheck_context(const ibv_context*);

// Before the first region is on record, and never from within the program's allocator: finds that allocator,
// whose own munmap() the checker leaves alone (memory_calls.cpp). Any thread.
void note_allocator();

}  // namespace weir::check

// Declares `call`, the function of that name behind ours, looked up once.
#define WEIR_NEXT(name) static auto* const call = weir::check::next_call<decltype(name)>(#name)
