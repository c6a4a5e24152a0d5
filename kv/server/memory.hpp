// The process's memory as the kernel sees it, and what becomes of what is freed. What is used: kv/heap.hpp.
#pragma once

#include <cstddef>
#include <string>

namespace weir::kv {

std::string allocator_name();    // "libc", "jemalloc-5.3.0"
std::string allocator_report();  // of its own, as text
std::size_t resident_memory();   // as the kernel counts
std::size_t system_memory();     // what the machine has

// From now on freed memory is used again before new is asked of the kernel: a value of 1 MiB that replaces
// another is not 256 page faults. Up to 64 MiB free at the heap's end, and holes, stay with the process.
void keep_freed_memory();
// Gives back to the kernel what is free (MEMORY PURGE).
void give_back_memory();

}  // namespace weir::kv
