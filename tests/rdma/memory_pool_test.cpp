// The pool's accounting: rounding, the cap, reuse, the water-mark. Registration is
// tested only with a device.
#include "rdma/device/memory_pool.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <system_error>
#include <vector>

namespace weir::rdma {
namespace {

constexpr std::size_t kib = 1024;

struct MemoryPoolTest : testing::Test {
  ProtectionDomain none;
  MemoryPool pool{none, {.slab_bytes = 64 * kib, .max_bytes = 256 * kib, .keep_bytes = 64 * kib}};
};

TEST_F(MemoryPoolTest, rounds_up_to_a_power_of_two) {
  struct Case {
    std::size_t asked, given;
  };
  for (const Case each :
       {Case{1, 4 * kib}, Case{4096, 4 * kib}, Case{4097, 8 * kib}, Case{64 * kib, 64 * kib}}) {
    auto block = pool.take(each.asked);
    ASSERT_TRUE(block) << block.error().what;
    EXPECT_EQ(block->bytes().size(), each.given);
  }
}

TEST_F(MemoryPoolTest, blocks_do_not_overlap) {
  std::vector<MemoryPool::Block> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(std::move(*pool.take(4 * kib)));
  for (std::size_t i = 0; i < blocks.size(); ++i)
    std::ranges::fill(blocks[i].bytes(), static_cast<std::byte>(i));
  for (std::size_t i = 0; i < blocks.size(); ++i)
    EXPECT_TRUE(
        std::ranges::all_of(blocks[i].bytes(), [&](std::byte b) { return b == static_cast<std::byte>(i); }));
  EXPECT_EQ(pool.stats().slabs, 1u);
}

TEST_F(MemoryPoolTest, refuses_beyond_the_cap_and_says_so) {
  std::vector<MemoryPool::Block> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(std::move(*pool.take(64 * kib)));
  auto refused = pool.take(4 * kib);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::memory_limit);
  EXPECT_NE(refused.error().what.find("262144"), std::string::npos) << refused.error().what;
  EXPECT_EQ(pool.stats().refused, 1u);

  blocks.pop_back();
  blocks.pop_back();  // their slabs make room for one of another size
  EXPECT_TRUE(pool.take(4 * kib));
}

TEST_F(MemoryPoolTest, refuses_a_block_larger_than_the_cap) {
  EXPECT_EQ(pool.take(512 * kib).error().code, Errc::memory_limit);
  EXPECT_EQ(pool.take(SIZE_MAX).error().code, Errc::memory_limit);
}

TEST_F(MemoryPoolTest, keeps_free_slabs_beyond_the_water_mark_only_while_they_are_needed) {
  std::vector<MemoryPool::Block> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(std::move(*pool.take(64 * kib)));
  blocks.clear();
  pool.trim();
  EXPECT_EQ(pool.stats().slab_bytes, 4 * 64 * kib) << "needed since the last trim";
  for (int i = 0; i < 2; ++i) blocks.push_back(std::move(*pool.take(64 * kib)));
  blocks.clear();
  pool.trim();
  EXPECT_EQ(pool.stats().slab_bytes, 3 * 64 * kib) << "two were needed, one is the water-mark";
  pool.trim();
  EXPECT_EQ(pool.stats().slab_bytes, 64 * kib);
  EXPECT_EQ(pool.stats().slabs_returned, 3u);
  EXPECT_EQ(pool.stats().used_bytes, 0u);
}

TEST_F(MemoryPoolTest, hands_out_the_warmest_block_first) {
  auto first = std::move(*pool.take(4 * kib));
  const auto* at = first.bytes().data();
  first = {};
  EXPECT_EQ(pool.take(4 * kib)->bytes().data(), at);
}

std::ptrdiff_t resident_pages(std::span<std::byte> bytes) {
  std::vector<unsigned char> resident(bytes.size() / static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(mincore(bytes.data(), bytes.size(), resident.data()), 0);
  return std::ranges::count_if(resident, [](unsigned char page) { return (page & 1) != 0; });
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

TEST_F(MemoryPoolTest, a_zeroed_block_holds_nothing_that_its_holder_before_left) {
  struct Case {
    const char* left_in;
    std::size_t offset, bytes;
  };
  for (const Case& each :
       {Case{"all of it", 0, 64 * kib}, Case{"the first byte", 0, 1}, Case{"the last byte", 64 * kib - 1, 1},
        Case{"the middle", 20 * kib + 5, 9 * kib}, Case{"nothing", 0, 0}}) {
    SCOPED_TRACE(each.left_in);
    auto before = std::move(*pool.take(64 * kib));
    const auto* at = before.bytes().data();
    std::ranges::fill(before.bytes().subspan(each.offset, each.bytes), std::byte{'s'});
    before = {};
    auto after = std::move(*pool.take_zeroed(64 * kib));
    ASSERT_EQ(after.bytes().data(), at) << "the same block, or this shows nothing";
    EXPECT_TRUE(all_zero(after.bytes()));
  }
}

TEST_F(MemoryPoolTest, zeroing_a_block_ends_at_its_last_byte) {
  auto first = std::move(*pool.take(4 * kib));
  auto second = std::move(*pool.take(4 * kib));
  std::ranges::fill(first.bytes(), std::byte{'s'});
  std::ranges::fill(second.bytes(), std::byte{'t'});
  ASSERT_EQ(first.bytes().data() + 4 * kib, second.bytes().data());
  first = {};
  EXPECT_TRUE(all_zero(pool.take_zeroed(4 * kib)->bytes()));
  EXPECT_TRUE(std::ranges::all_of(second.bytes(), [](std::byte b) { return b == std::byte{'t'}; }));
}

TEST_F(MemoryPoolTest, zeroing_does_not_touch_pages_that_nobody_used) {
  auto before = std::move(*pool.take(64 * kib));
  before.bytes()[17 * kib] = std::byte{1};
  before = {};
  auto after = std::move(*pool.take_zeroed(64 * kib));
  EXPECT_EQ(resident_pages(after.bytes()), 1);
  EXPECT_TRUE(all_zero(after.bytes()));
}

// A software NIC finds the file behind a region through a descriptor of this process. Without one it cannot
// show the memory to the peer's process, and falls back to system calls.
TEST_F(MemoryPoolTest, keeps_its_memory_reachable_through_a_descriptor) {
  const auto descriptors = [] {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      count += std::filesystem::read_symlink(entry, gone).string().starts_with("/memfd:weir-pool");
    }
    return count;
  };
  {
    const auto block = std::move(*pool.take(4 * kib));
    EXPECT_EQ(descriptors(), 1);
  }
  MemoryPool other{none, {.slab_bytes = 64 * kib, .max_bytes = 256 * kib, .keep_bytes = 0}};
  {
    const auto block = std::move(*other.take(4 * kib));
  }
  other.return_idle(0);
  EXPECT_EQ(descriptors(), 1) << "a slab that went back closes its own";
}

TEST_F(MemoryPoolTest, does_not_touch_pages_before_their_user_does) {
  auto block = std::move(*pool.take(64 * kib));
  block.bytes()[0] = std::byte{1};
  EXPECT_EQ(resident_pages(block.bytes()), 1);
}

}  // namespace
}  // namespace weir::rdma
