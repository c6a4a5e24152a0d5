#include "kv/text/large_blocks.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace weir::kv {
namespace {

bool is_large(std::size_t size) { return size >= smallest_large_block; }

// In steps, so that a table that grows a little at a time is not moved each time.
std::size_t mapped(std::size_t size) {
  return (size + smallest_large_block - 1) / smallest_large_block * smallest_large_block;
}

void* new_block(std::size_t size) {
  if (!is_large(size)) return std::malloc(size);
  void* const mapping =
      mmap(nullptr, mapped(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mapping == MAP_FAILED ? nullptr : mapping;
}

void* remap(void* block, std::size_t old_size, std::size_t new_size) {
  if (mapped(new_size) == mapped(old_size)) return block;
  void* const mapping = mremap(block, mapped(old_size), mapped(new_size), MREMAP_MAYMOVE);
  return mapping == MAP_FAILED ? nullptr : mapping;
}

}  // namespace

void* reallocate_block(void* block, std::size_t old_size, std::size_t new_size) {
  if (block == nullptr) return new_block(new_size);
  if (!is_large(old_size) && !is_large(new_size)) return std::realloc(block, new_size);
  if (is_large(old_size) && is_large(new_size)) return remap(block, old_size, new_size);
  void* const moved = new_block(new_size);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, block, std::min(old_size, new_size));
  free_block(block, old_size);
  return moved;
}

void free_block(void* block, std::size_t size) {
  if (block == nullptr) return;
  if (is_large(size)) {
    munmap(block, mapped(size));
  } else {
    std::free(block);
  }
}

}  // namespace weir::kv
