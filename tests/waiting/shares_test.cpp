// Which place of a full queue is given up.
#include "waiting/shares.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/waiting/shares_cases.hpp"

namespace weir::waiting {
namespace {

using Queue = Shares<char, int>;

TEST(Shares, give_up_the_oldest_of_the_source_with_most) {
  struct Row {
    const char* came;  // the n-th from the left has item n
    char newcomer;
    int taken;  // its item; -1: none
    int first;
  };
  for (const Row& row :
       {Row{"", 'a', -1, -1}, Row{"a", 'a', -1, 0}, Row{"a", 'b', -1, 0}, Row{"aa", 'b', 0, 0},
        Row{"aa", 'a', -1, 0}, Row{"abb", 'c', 1, 1}, Row{"abb", 'a', -1, 1}, Row{"abbb", 'a', 1, 1},
        Row{"babcc", 'd', 0, 0}, Row{"acbc", 'd', 1, 1}, Row{"abc", 'd', -1, 0}}) {
    SCOPED_TRACE(row.came);
    Queue queue;
    for (int i = 0; row.came[i] != 0; ++i) queue.enter(row.came[i], i);
    const auto* const taken = queue.taken_by(row.newcomer);
    const auto* const first = queue.first_to_leave();
    EXPECT_EQ(taken == nullptr ? -1 : taken->second, row.taken) << row.newcomer;
    EXPECT_EQ(first == nullptr ? -1 : first->second, row.first);
  }
}

TEST(Shares, leave_in_the_order_of_the_cases) {
  for (const SharesCase& row : shares_cases) {
    Queue queue;
    std::vector<Queue::Number> numbers;
    for (const char event : row.events) {
      if (event >= '0' && event <= '9')
        queue.move_on(numbers[static_cast<std::size_t>(event - '0')]);
      else
        numbers.push_back(queue.enter(event, static_cast<int>(numbers.size())));
    }
    std::string left;
    while (const auto* const place = queue.first_to_leave()) {
      left += static_cast<char>('0' + place->second);
      queue.leave(place->first);
    }
    EXPECT_EQ(left, row.leave) << row.name;
    EXPECT_EQ(queue.size(), 0u) << row.name;
  }
}

TEST(Shares, know_the_oldest_of_all_sources) {
  Queue queue;
  EXPECT_EQ(queue.oldest(), nullptr);
  const Queue::Number first = queue.enter('a', 1);
  for (int i = 2; i < 5; ++i) queue.enter('b', i);
  queue.move_on(first);
  EXPECT_EQ(queue.oldest()->second, 1);
  queue.leave(first);
  EXPECT_EQ(queue.oldest()->second, 2);
}

TEST(Shares, ignore_a_move_of_one_that_has_left) {
  Queue queue;
  const Queue::Number first = queue.enter('a', 1);
  queue.leave(first);
  queue.move_on(first);
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(queue.first_to_leave(), nullptr);
}

// An honest source has one place, which moves three times in its life of 30 newcomers; the others of the same
// source come and stand still, after none, one or two moves.
TEST(Shares, spare_a_place_that_moves_among_many_that_stop) {
  constexpr std::size_t places = 128;
  std::mt19937 random(5);
  Queue queue;
  const auto other_comes = [&] {
    if (queue.size() == places) queue.leave(queue.first_to_leave()->first);
    const Queue::Number number = queue.enter('a', 0);
    for (auto moves = random() % 3; moves > 0; --moves) queue.move_on(number);
  };
  for (std::size_t i = 0; i < 4 * places; ++i) other_comes();
  for (int round = 0; round < 1000; ++round) {
    if (queue.size() == places) queue.leave(queue.first_to_leave()->first);
    const Queue::Number honest = queue.enter('a', 1);
    for (int moves = 0; moves < 3; ++moves) {
      for (int i = 0; i < 30; ++i) other_comes();
      queue.move_on(honest);
    }
    ASSERT_TRUE(queue.leave(honest)) << round;
  }
}

TEST(Shares, forget_what_has_left) {
  Queue queue;
  const Queue::Number first = queue.enter('a', 1);
  queue.enter('a', 2);
  EXPECT_EQ(queue.leave(first), 1);
  EXPECT_EQ(queue.leave(first), std::nullopt);
  EXPECT_EQ(queue.held_by('a'), 1u);
  EXPECT_EQ(queue.first_to_leave()->second, 2);
}

TEST(Shares, keep_every_source_that_has_less_than_its_share) {
  constexpr std::size_t places = 12;
  Queue queue;
  std::mt19937 random(3);
  for (int round = 0; round < 10'000; ++round) {
    const char source = random() % 8 != 0 ? 'a' : static_cast<char>('b' + random() % 3);
    if (queue.size() == places) {
      const auto* const taken = queue.taken_by(source);
      if (taken == nullptr) continue;
      queue.leave(taken->first);
    }
    queue.enter(source, round);
  }
  for (const char source : {'a', 'b', 'c', 'd'}) EXPECT_EQ(queue.held_by(source), places / 4) << source;
}

}  // namespace
}  // namespace weir::waiting
