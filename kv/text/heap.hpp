// The heap, counted.
//
// With maxmemory set, each command needs the number of used bytes. glibc would walk all free chunks
// (mallinfo2), which takes milliseconds after a million small keys were deleted. So memory from operator new
// and allocate_zeroed() is counted as it is allocated and freed, each piece with the size to which the heap
// rounds it up. Memory that libraries, OpenSSL first, take from malloc themselves is not counted; Redis omits
// it, too. The sanitizers have their own heap and count.
//
// Threading: any thread, at any time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

namespace weir::kv {

std::size_t used_memory();  // takes a few nanoseconds

// How much was used when a server started, and the most since, as far as it was looked at.
struct HeapMarks {
  std::size_t at_start = used_memory();
  std::size_t sampled_peak = 0;

  void sample() { sampled_peak = peak(); }
  std::size_t peak() const { return std::max(sampled_peak, used_memory()); }
};

// What the heap has given for this piece, which is more than was asked for; 0: null.
std::size_t heap_size(const void* piece);
// What the heap holds for a text, beside the object itself.
std::size_t heap_size(const std::string& text);

// For memory that will be resized: the heap grows a large piece in place if it can, and copies it otherwise.
// Both throw std::bad_alloc; resized() then keeps the old piece.
void* allocate(std::size_t bytes);
void* resized(void* at, std::size_t bytes);
void free_allocated(void* at) noexcept;

// Zeroed memory. Large pieces use no memory before they are touched. Throws std::bad_alloc.
void* allocate_zeroed(std::size_t bytes);
void free_zeroed(void* at) noexcept;

}  // namespace weir::kv
