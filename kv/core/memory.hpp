// The process's memory as the kernel sees it, and the handling of freed memory. Used memory:
// kv/text/heap.hpp.
#pragma once

#include <cstddef>
#include <string>

namespace weir::kv {

std::string allocator_name();    // "libc", "jemalloc-5.3.0"
std::string allocator_report();  // the allocator's own text
std::size_t resident_memory();   // as the kernel counts
std::size_t system_memory();     // of the machine

// From now on freed memory is reused before the kernel is asked for more, so that replacing a 1 MiB value
// does not cost 256 page faults. Up to 64 MiB at the heap's end, and holes, stay with the process.
void keep_freed_memory();
// Returns free memory to the kernel (MEMORY PURGE).
void give_back_memory();

}  // namespace weir::kv
