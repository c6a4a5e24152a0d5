// Numbers of queue pairs: each free one once, in an order that strangers cannot guess.
#include "rnic/queue_pair/queue_pair_numbers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>
#include <vector>

namespace weir::rnic {
namespace {

constexpr std::uint64_t secret = 0x1234'5678'9abc'def0;
constexpr auto none_taken = [](std::uint32_t) { return false; };

TEST(QueuePairNumbers, do_not_count_up) {
  QueuePairNumbers numbers;
  numbers.begin(secret);
  int neighbours = 0;
  auto before = *numbers.next(0, none_taken);
  for (int i = 0; i < 1'000; ++i) {
    const auto now = *numbers.next(0, none_taken);
    neighbours += now == before + 1 || now + 1 == before ? 1 : 0;
    before = now;
  }
  EXPECT_LT(neighbours, 10);
}

TEST(QueuePairNumbers, differ_from_process_to_process) {
  QueuePairNumbers one, other;
  one.begin(secret);
  other.begin(secret + 1);
  int same = 0;
  for (int i = 0; i < 500; ++i) same += one.next(0, none_taken) == other.next(0, none_taken) ? 1 : 0;
  EXPECT_LT(same, 10);
}

TEST(QueuePairNumbers, are_not_used_again_soon) {
  QueuePairNumbers numbers;
  numbers.begin(secret);
  constexpr std::size_t recent = (1u << QueuePairNumbers::least_bits) / 4 - 1;
  std::deque<std::uint32_t> last;
  for (int i = 0; i < 20'000; ++i) {
    const auto now = *numbers.next(0, none_taken);
    EXPECT_GE(now, QueuePairNumbers::first);
    EXPECT_EQ(std::ranges::find(last, now), last.end());
    last.push_back(now);
    if (last.size() > recent) last.pop_front();
  }
}

TEST(QueuePairNumbers, are_all_given_before_there_are_none) {
  QueuePairNumbers numbers;
  numbers.begin(secret);
  std::set<std::uint32_t> taken;
  while (const auto next = numbers.next(taken.size(), [&](auto index) { return taken.contains(index); }))
    EXPECT_TRUE(taken.insert(*next).second);
  EXPECT_EQ(taken.size(), max_qps - QueuePairNumbers::first);
  std::vector<std::uint32_t> used;
  numbers.for_each_used([&](std::uint32_t index) { used.push_back(index); });
  EXPECT_TRUE(std::ranges::equal(used, taken));
}

// However far into the secret order it is asked: the order changes in the middle of most such searches.
TEST(QueuePairNumbers, find_the_only_one_that_is_free) {
  QueuePairNumbers numbers;
  numbers.begin(secret);
  ASSERT_EQ(numbers.next(max_qps, [](auto index) { return index != max_qps - 1; }), max_qps - 1);
  for (std::uint32_t free = QueuePairNumbers::first; free < max_qps; free += 4'001)
    EXPECT_EQ(numbers.next(max_qps, [&](auto index) { return index != free; }), free);
}

TEST(QueuePairNumbers, stay_in_a_small_window_while_there_are_few) {
  QueuePairNumbers numbers;
  numbers.begin(secret);
  for (int i = 0; i < 5'000; ++i)
    EXPECT_LT(*numbers.next(100, none_taken), 1u << QueuePairNumbers::least_bits);
}

}  // namespace
}  // namespace weir::rnic
