#include "kv/text/large_blocks.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace weir::kv {
namespace {

bool is_large(std::size_t size) { return size >= smallest_large_block; }

// A mapping of whole huge pages is laid where they fit.
std::size_t mapped(std::size_t size) {
  return (size + smallest_large_block - 1) / smallest_large_block * smallest_large_block;
}

void ask_for_huge_pages(void* mapping, std::size_t size) {
  madvise(mapping, mapped(size), MADV_HUGEPAGE);  // without them it is slower
}

void* new_block(std::size_t size) {
  if (!is_large(size)) return std::malloc(size);
  void* const mapping =
      mmap(nullptr, mapped(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  ask_for_huge_pages(mapping, size);
  return mapping;
}

void* remap(void* block, std::size_t old_size, std::size_t new_size) {
  if (mapped(new_size) == mapped(old_size)) return block;
  void* const mapping = mremap(block, mapped(old_size), mapped(new_size), MREMAP_MAYMOVE);
  if (mapping == MAP_FAILED) return nullptr;
  ask_for_huge_pages(mapping, new_size);
  return mapping;
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
