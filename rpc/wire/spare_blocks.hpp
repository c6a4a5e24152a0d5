// Large blocks of memory that this thread gave back, for whoever in it needs one next: memory that was used
// before is in place, whereas new memory comes page by page from the kernel, which takes longer than copying
// into it. All connections of a thread share them.
//
// Memory: most_bytes a thread at most; beyond that those that were not needed for the longest time go back to
// the heap. Threading: each thread has its
// own; a block may be taken in one and given back in another.
#pragma once

#include <cstddef>

namespace weir::rpc::spare_blocks {

inline constexpr std::size_t smallest = 64 << 10;  // below that the heap has them at hand itself
inline constexpr std::size_t most_bytes = 16 << 20;

struct Block {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

// At least so much, from operator new; more, if a spare one fits. Not for less than `smallest`.
Block take(std::size_t bytes);
void give_back(Block block);
std::size_t kept_bytes();  // in this thread

}  // namespace weir::rpc::spare_blocks
