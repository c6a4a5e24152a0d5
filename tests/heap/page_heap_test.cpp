#include "verbs/heap/page_heap.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <random>

namespace weir::heap {
namespace {

constexpr std::size_t heap_bytes = 1 << 24;

class Pages : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(heap_.open(heap_bytes)); }
  void TearDown() override { heap_.close(); }
  PageHeap heap_;
};

TEST_F(Pages, a_block_is_aligned_to_its_size) {
  for (std::size_t bytes = page_bytes; bytes <= heap_bytes / 2; bytes *= 2) {
    void* const at = heap_.allocate(bytes);
    ASSERT_NE(at, nullptr) << bytes;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % bytes, 0u);
    heap_.free(at);
  }
}

TEST_F(Pages, a_full_heap_says_so_and_is_whole_again_when_all_is_freed) {
  std::vector<void*> blocks;
  while (void* const at = heap_.allocate(page_bytes * 3)) blocks.push_back(at);
  EXPECT_EQ(blocks.size(), heap_bytes / (4 * page_bytes));
  for (void* const at : blocks) heap_.free(at);
  EXPECT_EQ(heap_.free_bytes(), heap_bytes);
  EXPECT_NE(heap_.allocate(heap_bytes), nullptr);
}

TEST_F(Pages, more_than_the_heap_holds_is_refused) {
  EXPECT_EQ(heap_.allocate(heap_bytes + 1), nullptr);
  EXPECT_EQ(heap_.allocate(~std::size_t{0}), nullptr);
}

TEST_F(Pages, a_freed_block_comes_back_zero) {
  auto* const first = static_cast<char*>(heap_.allocate(page_bytes * 4));
  std::memset(first, 'x', page_bytes * 4);
  heap_.free(first);
  auto* const again = static_cast<char*>(heap_.allocate(page_bytes * 4));
  ASSERT_EQ(again, first);
  for (std::size_t i = 0; i < page_bytes * 4; ++i) ASSERT_EQ(again[i], 0) << i;
}

TEST_F(Pages, freeing_twice_changes_nothing) {
  void* const at = heap_.allocate(page_bytes);
  heap_.free(at);
  heap_.free(at);
  EXPECT_EQ(heap_.free_bytes(), heap_bytes);
}

TEST_F(Pages, a_child_gives_nothing_out_and_nothing_back) {
  auto* const at = static_cast<char*>(heap_.allocate(page_bytes));
  *at = 'x';
  heap_.leave_to_parent();
  EXPECT_EQ(heap_.allocate(page_bytes), nullptr);
  heap_.free(at);
  EXPECT_EQ(*at, 'x');
  EXPECT_TRUE(heap_.holds(at));
}

TEST_F(Pages, random_blocks_never_overlap_and_keep_their_bytes) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  struct Block {
    std::size_t bytes;
    unsigned char mark;
  };
  std::map<unsigned char*, Block> model;
  for (int step = 0; step < 3000; ++step) {
    if (random() % 2 == 0 || model.empty()) {
      const std::size_t bytes = 1 + random() % (64 * page_bytes);
      auto* const at = static_cast<unsigned char*>(heap_.allocate(bytes));
      if (at == nullptr) continue;
      const auto next = model.upper_bound(at);
      if (next != model.end()) {
        ASSERT_LE(at + bytes, next->first);
      }
      if (next != model.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second.bytes, at);
      }
      ASSERT_GE(heap_.capacity(at), bytes);
      const auto mark = static_cast<unsigned char>(random());
      at[0] = at[bytes - 1] = mark;
      model[at] = {bytes, mark};
    } else {
      auto victim = model.begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(random() % model.size()));
      ASSERT_EQ(victim->first[0], victim->second.mark);
      ASSERT_EQ(victim->first[victim->second.bytes - 1], victim->second.mark);
      heap_.free(victim->first);
      model.erase(victim);
    }
  }
  for (const auto& [at, block] : model) heap_.free(at);
  EXPECT_EQ(heap_.free_bytes(), heap_bytes);
}

TEST(PagesOfNoHeap, there_is_none_under_a_limit_of_file_sizes_below_it) {
  const auto open_in_a_child = [] {
    const rlimit half{heap_bytes / 2, heap_bytes / 2};
    PageHeap heap;
    ::_exit(::setrlimit(RLIMIT_FSIZE, &half) == 0 && !heap.open(heap_bytes) ? 0 : 1);
  };
  EXPECT_EXIT(open_in_a_child(), testing::ExitedWithCode(0), "");
}

TEST(PagesOfNoHeap, are_none) {
  PageHeap heap;
  int local = 0;
  EXPECT_FALSE(heap.holds(&local));
  EXPECT_EQ(heap.allocate(1), nullptr);
}

}  // namespace
}  // namespace weir::heap
