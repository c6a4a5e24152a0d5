// The heap, counted.
//
// How many bytes are used is asked for every command where maxmemory is set, and glibc answers by walking all
// free chunks (mallinfo2), which takes milliseconds once a million small keys were deleted. So what operator
// new and allocate_zeroed() give is counted as it comes and goes, each piece with what the heap rounds it up
// to. Not counted is what libraries take from malloc themselves, OpenSSL first of all; Redis leaves that out,
// too. The sanitizers have a heap, and a count, of their own.
//
// Threading: any thread, at any time.
#pragma once

#include <cstddef>

namespace weir::kv {

std::size_t used_memory();  // a few nanoseconds

// For pieces that will be resized: the heap grows a large one where it lies, if it can, and copies it if not.
// resized() keeps the old piece when it throws std::bad_alloc, as allocate() does.
void* allocate(std::size_t bytes);
void* resized(void* at, std::size_t bytes);
void free_allocated(void* at) noexcept;

// Zeros. Large pieces take no memory before they are touched. Throws std::bad_alloc.
void* allocate_zeroed(std::size_t bytes);
void free_zeroed(void* at) noexcept;

}  // namespace weir::kv
