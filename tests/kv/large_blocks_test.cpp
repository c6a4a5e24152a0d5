// Blocks keep their bytes however their size changes, whichever kind they are before and after.
#include "kv/text/large_blocks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace weir::kv {
namespace {

constexpr std::size_t small = 100;
constexpr std::size_t limit = smallest_large_block;

unsigned char byte_at(std::size_t place) { return static_cast<unsigned char>(place * 7 + place / 4096); }

void fill(void* block, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; ++i) static_cast<unsigned char*>(block)[i] = byte_at(i);
}

bool holds(const void* block, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i)
    if (static_cast<const unsigned char*>(block)[i] != byte_at(i)) return false;
  return true;
}

TEST(LargeBlocks, keep_their_bytes_when_resized) {
  constexpr std::size_t sizes[] = {
      small,         limit - 1,     limit, limit + 1, 2 * limit, 3 * limit - 5, 17 * limit, 16 * limit,
      2 * limit + 1, 2 * limit - 1, limit, small,     5 * limit, limit - 1,     1,
  };
  std::size_t size = 0;
  void* block = nullptr;
  for (const std::size_t next : sizes) {
    block = reallocate_block(block, size, next);
    ASSERT_NE(block, nullptr) << size << " to " << next;
    ASSERT_TRUE(holds(block, std::min(size, next))) << size << " to " << next;
    fill(block, std::min(size, next), next);
    size = next;
  }
  free_block(block, size);
}

TEST(LargeBlocks, stay_as_they_were_without_memory) {
  constexpr std::size_t too_much = std::numeric_limits<std::size_t>::max() / 4;
  for (const std::size_t size : {small, 2 * limit}) {
    void* const block = reallocate_block(nullptr, 0, size);
    ASSERT_NE(block, nullptr);
    fill(block, 0, size);
    EXPECT_EQ(reallocate_block(block, size, too_much), nullptr);
    EXPECT_TRUE(holds(block, size));
    free_block(block, size);
  }
  EXPECT_EQ(reallocate_block(nullptr, 0, too_much), nullptr);
  free_block(nullptr, 0);
}

}  // namespace
}  // namespace weir::kv
