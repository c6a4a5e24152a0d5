#include "rpc/wire/block_cache.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <span>

namespace weir::rpc::block_cache {
namespace {

constexpr std::size_t most_blocks = most_bytes / smallest;
// A block is not used for a far smaller need.
constexpr std::size_t most_times_too_large = 4;
constexpr std::size_t largest_shown = 8 << 20;

// When a thread ends, its blocks are freed. Blocks that come back even later (from objects that outlive
// it) go to the heap at once.
struct Kept {
  ~Kept() {
    for (const Block& block : all()) ::operator delete(block.data);
    ended = true;
  }
  std::span<Block> all() { return std::span(blocks).first(count); }
  Block remove(Block* which) {
    const Block removed = *which;
    std::copy(which + 1, blocks.data() + count, which);
    --count;
    bytes -= removed.bytes;
    return removed;
  }
  // The block returned last is at the end: it may still be in the cache.
  std::array<Block, most_blocks> blocks;
  std::size_t count = 0;
  std::size_t bytes = 0;
  static thread_local bool ended;
};
thread_local bool Kept::ended = false;
thread_local Kept kept;

// glibc keeps freed memory up to twice the largest block that it saw freed (mallopt(3),
// M_TRIM_THRESHOLD) and returns the rest to the kernel. Large blocks kept here are never seen as freed,
// so the strings of functions and callers would cause page faults at each call: 256 KiB a call, one in
// flight, was three times as slow.
bool show_the_heap_a_large_block() {
  void* volatile block = ::operator new(largest_shown);
  ::operator delete(block);
  return true;
}

}  // namespace

Block take(std::size_t bytes) {
  [[maybe_unused]] static const bool shown = show_the_heap_a_large_block();
  if (!Kept::ended && kept.bytes >= bytes) {
    Block* best = nullptr;
    for (Block& block : kept.all())
      if (block.bytes >= bytes && block.bytes / most_times_too_large <= bytes &&
          (best == nullptr || block.bytes <= best->bytes))
        best = &block;
    if (best != nullptr) return kept.remove(best);
  }
  return {static_cast<std::byte*>(::operator new(bytes)), bytes};
}

void give_back(Block block) {
  if (Kept::ended || block.bytes < smallest || block.bytes > most_bytes) return ::operator delete(block.data);
  // The blocks unused for the longest time make room.
  while (kept.bytes + block.bytes > most_bytes) ::operator delete(kept.remove(kept.blocks.data()).data);
  kept.blocks[kept.count++] = block;
  kept.bytes += block.bytes;
}

std::size_t kept_bytes() { return Kept::ended ? 0 : kept.bytes; }

}  // namespace weir::rpc::block_cache
