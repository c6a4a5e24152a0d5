// Spare memory never shows what the process had in its heap, and to a hub's peers nothing of each other.
#include "tensor/memory/spare_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace weir::tensor {
namespace {

bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte each) { return each == std::byte{0}; });
}

std::size_t resident_pages(std::span<const std::byte> bytes) {
  std::vector<unsigned char> pages((bytes.size() + 4095) / 4096);
  if (mincore(const_cast<std::byte*>(bytes.data()), bytes.size(), pages.data()) != 0) return pages.size();
  return static_cast<std::size_t>(std::ranges::count_if(pages, [](unsigned char each) { return each & 1; }));
}

struct SpareSizes : testing::TestWithParam<std::size_t> {
  std::shared_ptr<SpareMemory> spare = std::make_shared<SpareMemory>(std::size_t{64} << 20);
};

TEST_P(SpareSizes, new_memory_shows_no_heap) {
  // Freed memory of the same size, which the allocator is likely to hand out next.
  void* const secret = std::aligned_alloc(64, (GetParam() / 64 + 1) * 64);
  std::memset(secret, 0x53, GetParam());
  std::free(secret);
  EXPECT_TRUE(is_zero(spare->take(GetParam())->bytes));
}

TEST_P(SpareSizes, zeroed_memory_shows_no_earlier_holder) {
  for (int round = 0; round < 2; ++round) {
    const SpareMemory::Taken taken = *spare->take_zeroed(GetParam());
    EXPECT_TRUE(is_zero(taken.bytes));
    std::ranges::fill(taken.bytes, std::byte{0x53});
  }
}
INSTANTIATE_TEST_SUITE_P(All, SpareSizes, testing::Values(1, 4096, 100'000, 1 << 20, 5 << 20));

TEST(SpareMemory, a_large_block_has_no_pages_before_they_are_written) {
  const auto spare = std::make_shared<SpareMemory>(std::size_t{64} << 20);
  constexpr std::size_t size = std::size_t{1} << 20;
  for (int round = 0; round < 2; ++round) {
    const SpareMemory::Taken taken = *spare->take_zeroed(size);
    EXPECT_LE(resident_pages(taken.bytes), 1U);
    std::ranges::fill(taken.bytes, std::byte{0x53});
  }
}

}  // namespace
}  // namespace weir::tensor
