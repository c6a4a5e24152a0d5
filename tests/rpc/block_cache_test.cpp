// Large blocks are reused within a thread, and no thread keeps more than its limit.
#include "rpc/wire/block_cache.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "rpc/wire/bytes.hpp"

namespace weir::rpc {
namespace {

// In its own thread, so that other tests' blocks do not matter.
template <class Test>
void in_a_new_thread(Test test) {
  std::thread(std::move(test)).join();
}

TEST(BlockCache, a_large_block_is_used_again) {
  in_a_new_thread([] {
    const std::byte* first = nullptr;
    {
      Bytes bytes;
      first = bytes.grow(300'000);
    }
    EXPECT_EQ(block_cache::kept_bytes(), 300'000u);
    Bytes bytes;
    EXPECT_EQ(bytes.grow(200'000), first);
    EXPECT_EQ(bytes.capacity(), 300'000u);
    EXPECT_EQ(block_cache::kept_bytes(), 0u);
  });
}

TEST(BlockCache, growing_keeps_the_contents_and_gives_the_old_block_back) {
  in_a_new_thread([] {
    Bytes bytes;
    for (int i = 0; i < 100'000; ++i) *bytes.grow(1) = static_cast<std::byte>(i);
    bytes.grow(1'000'000);
    for (int i = 0; i < 100'000; ++i) ASSERT_EQ(bytes.data()[i], static_cast<std::byte>(i)) << i;
    EXPECT_GE(block_cache::kept_bytes(), block_cache::smallest);
  });
}

TEST(BlockCache, the_smallest_that_fits_is_taken_and_none_is_spent_on_what_needs_far_less) {
  in_a_new_thread([] {
    std::vector<Bytes> all(3);
    const std::byte* place[3];
    const std::size_t sizes[3] = {4 << 20, 1 << 20, 2 << 20};
    for (int i = 0; i < 3; ++i) place[i] = all[i].grow(sizes[i]);
    all.clear();
    Bytes fits, much_smaller;
    EXPECT_EQ(fits.grow(900'000), place[1]);
    much_smaller.grow(100'000);
    EXPECT_EQ(much_smaller.capacity(), 100'000u);
    EXPECT_EQ(block_cache::kept_bytes(), std::size_t{6} << 20);
  });
}

TEST(BlockCache, of_those_that_fit_the_last_that_came_back_is_taken_and_the_first_makes_room) {
  in_a_new_thread([] {
    constexpr std::size_t each = block_cache::most_bytes / 4;
    std::vector<Bytes> all(5);
    for (Bytes& bytes : all) bytes.grow(each);
    std::vector<const std::byte*> places;
    for (Bytes& bytes : all) {
      places.push_back(bytes.data());
      bytes = Bytes();
    }
    EXPECT_EQ(block_cache::kept_bytes(), block_cache::most_bytes);
    for (std::size_t i = 4; i > 0; --i) EXPECT_EQ(all[i].grow(each), places[i]) << i;
    EXPECT_EQ(block_cache::kept_bytes(), 0u) << "the first one was let go of";
  });
}

TEST(BlockCache, many_blocks_are_kept_if_they_are_small) {
  in_a_new_thread([] {
    std::vector<Bytes> all(block_cache::most_bytes / block_cache::smallest);
    for (Bytes& bytes : all) bytes.grow(block_cache::smallest);
    all.clear();
    EXPECT_EQ(block_cache::kept_bytes(), block_cache::most_bytes);
  });
}

TEST(BlockCache, a_thread_keeps_no_more_than_it_may) {
  in_a_new_thread([] {
    std::vector<Bytes> all(100);
    for (Bytes& bytes : all) bytes.grow(1 << 20);
    all.clear();
    EXPECT_EQ(block_cache::kept_bytes(), block_cache::most_bytes);
    Bytes too_large;
    too_large.grow(block_cache::most_bytes + 1);
    too_large = Bytes();
    EXPECT_LE(block_cache::kept_bytes(), block_cache::most_bytes);
  });
}

TEST(BlockCache, what_was_taken_out_of_bytes_comes_back_with_all_of_its_capacity) {
  in_a_new_thread([] {
    Bytes bytes;
    bytes.reserve(300'000);
    bytes.grow(70'000);
    Buffer taken = bytes.take();
    EXPECT_EQ(taken.size(), 70'000u);
    EXPECT_EQ(bytes.capacity(), 0u);
    EXPECT_EQ(block_cache::kept_bytes(), 0u);
    taken.reset();
    EXPECT_EQ(block_cache::kept_bytes(), 300'000u);
  });
}

TEST(BlockCache, small_ones_go_back_to_the_heap) {
  in_a_new_thread([] {
    {
      Bytes().grow(1000);
    }
    EXPECT_EQ(block_cache::kept_bytes(), 0u);
  });
}

TEST(BlockCache, what_a_thread_took_another_may_give_back) {
  Bytes moved;
  in_a_new_thread([&] { moved.grow(1 << 20); });
  in_a_new_thread([taken = std::move(moved)]() mutable {
    taken = Bytes();
    EXPECT_EQ(block_cache::kept_bytes(), std::size_t{1} << 20);
  });
}

}  // namespace
}  // namespace weir::rpc
