#include "rpc/spare_blocks.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace weir::rpc::spare_blocks {
namespace {

constexpr std::size_t most_blocks = 16;
// A block is not spent on what needs far less.
constexpr std::size_t most_times_too_large = 4;
constexpr std::size_t largest_shown = 8 << 20;

// What is left in a thread that ends is freed; what comes back still later (from objects that outlive it)
// goes to the heap at once.
struct Kept {
  ~Kept() {
    for (const Block& block : blocks) ::operator delete(block.data);
    ended = true;
  }
  std::array<Block, most_blocks> blocks;
  std::size_t bytes = 0;
  static thread_local bool ended;
};
thread_local bool Kept::ended = false;
thread_local Kept kept;

// glibc keeps what is freed up to twice the largest block that it saw freed (mallopt(3), M_TRIM_THRESHOLD),
// and gives the rest back to the kernel. Kept here, large blocks are never seen freed, and the strings of
// functions and callers would be faulted in anew at each call: 256 KiB a call, one in flight, was three times
// as slow.
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
    for (Block& block : kept.blocks)
      if (block.bytes >= bytes && block.bytes / most_times_too_large <= bytes &&
          (best == nullptr || block.bytes < best->bytes))
        best = &block;
    if (best != nullptr) {
      kept.bytes -= best->bytes;
      return std::exchange(*best, {});
    }
  }
  return {static_cast<std::byte*>(::operator new(bytes)), bytes};
}

void give_back(Block block) {
  if (!Kept::ended && block.bytes >= smallest && kept.bytes + block.bytes <= most_bytes) {
    Block* const place = std::ranges::find(kept.blocks, nullptr, &Block::data);
    if (place != kept.blocks.end()) {
      kept.bytes += block.bytes;
      *place = block;
      return;
    }
  }
  ::operator delete(block.data);
}

std::size_t kept_bytes() { return Kept::ended ? 0 : kept.bytes; }

}  // namespace weir::rpc::spare_blocks
