// Large blocks of memory that this thread has returned, for its next use: memory that was used before is in
// place, whereas new memory comes page by page from the kernel, which takes longer than copying into it. All
// connections of a thread share them.
//
// Memory: at most most_bytes for each thread; beyond that, the blocks that were unused for the longest
// time return to the heap. Threading: each thread has its own blocks; a block may be taken in one
// thread and returned in another.
#pragma once

#include <cstddef>

namespace weir::rpc::block_cache {

inline constexpr std::size_t smallest = 64 << 10;  // below that the heap has them at hand itself
inline constexpr std::size_t most_bytes = 16 << 20;

struct Block {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

// At least that many bytes, from operator new; a spare block may be larger. Not for less than `smallest`.
Block take(std::size_t bytes);
void give_back(Block block);
std::size_t kept_bytes();  // in this thread

}  // namespace weir::rpc::block_cache
