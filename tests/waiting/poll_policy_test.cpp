// When the engine yields and when it sleeps, by a clock that only the test moves.
#include "waiting/poll_policy.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace weir::waiting {
namespace {

using namespace std::chrono_literals;
using Next = PollPolicy::Next;

struct PollPolicyTest : testing::Test {
  PollPolicy policy{50us};
  PollPolicy::TimePoint now{1h};
};

TEST_F(PollPolicyTest, yields_while_something_came_lately_and_then_sleeps) {
  EXPECT_EQ(policy.after_round(now, true), Next::yield);
  EXPECT_EQ(policy.after_round(now + 49us, false), Next::yield);
  EXPECT_EQ(policy.after_round(now + 50us, false), Next::sleep);
  EXPECT_EQ(policy.after_round(now + 60us, true), Next::yield) << "traffic again";
}

TEST_F(PollPolicyTest, looks_longer_after_each_short_sleep_up_to_a_limit) {
  policy.after_round(now, true);
  for (const auto spin : {50us, 100us, 200us, 200us}) {
    EXPECT_EQ(policy.after_round(now + spin - 1us, false), Next::yield);
    EXPECT_EQ(policy.after_round(now + spin, false), Next::sleep);
    EXPECT_EQ(policy.after_round(now + spin + 20us, false), Next::sleep) << "woken for nothing";
    now += spin + 200us;
    EXPECT_EQ(policy.after_round(now, true), Next::yield);
  }
}

TEST_F(PollPolicyTest, forgets_short_sleeps_after_a_long_one) {
  policy.after_round(now, true);
  policy.after_round(now += 50us, false);
  policy.after_round(now += 1us, true);
  EXPECT_EQ(policy.after_round(now + 99us, false), Next::yield) << "twice as long as at first";
  policy.after_round(now += 100us, false);
  policy.after_round(now += Spin::short_sleep * 50us + 1us, true);
  EXPECT_EQ(policy.after_round(now + 50us, false), Next::sleep);
}

// What comes after 300 us each time is never seen by a spin of 200.
TEST_F(PollPolicyTest, gives_up_spinning_longer_where_it_does_not_pay) {
  const auto gap = 300us;
  std::chrono::microseconds spun{0};
  constexpr int rounds = 2000;
  for (int i = 0; i < rounds; ++i) {
    policy.after_round(now, true);
    auto idle = 0us;
    while (policy.after_round(now + idle, false) == Next::yield) idle += 10us;
    spun += idle;
    now += gap;
  }
  EXPECT_LT(spun, rounds * 100us) << "of 50 at least and 200 at most";
}

// Gaps that a longer spin sees are not slept through any more.
TEST_F(PollPolicyTest, spins_as_long_as_it_pays) {
  int sleeps = 0;
  for (int i = 0; i < 1000; ++i) {
    policy.after_round(now, true);
    sleeps += policy.after_round(now + 149us, false) == Next::sleep ? 1 : 0;
    now += 150us;
  }
  EXPECT_EQ(sleeps, 2);
}

TEST_F(PollPolicyTest, without_spinning_never_spins_however_short_the_sleeps) {
  PollPolicy sleeper{0us};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sleeper.after_round(now += 1us, true), Next::sleep);
}

TEST_F(PollPolicyTest, sleeps_at_once_after_a_yield_that_cost_a_time_slice) {
  policy.yielded(now, now + 4ms);
  now += 4ms;
  EXPECT_EQ(policy.after_round(now, true), Next::sleep);
  EXPECT_EQ(policy.after_round(now + CoreContention::shortest - 1ms, true), Next::sleep);
  EXPECT_EQ(policy.after_round(now + CoreContention::shortest, true), Next::yield) << "tries again";
}

TEST_F(PollPolicyTest, takes_no_interrupt_for_a_crowd) {
  policy.yielded(now, now + 100us);
  now += 100us;
  EXPECT_EQ(policy.after_round(now, true), Next::yield);
}

TEST_F(PollPolicyTest, says_that_it_is_crowded_until_it_tries_again) {
  EXPECT_FALSE(policy.contended());
  policy.yielded(now, now + 4ms);
  EXPECT_TRUE(policy.contended());
  now += 4ms;
  policy.after_round(now + CoreContention::shortest - 1ms, true);
  EXPECT_TRUE(policy.contended());
  policy.after_round(now + CoreContention::shortest, true);
  EXPECT_FALSE(policy.contended());
}

TEST_F(PollPolicyTest, tries_again_ever_later_while_the_crowd_stays) {
  auto expected = CoreContention::shortest;
  for (int i = 0; i < 12; ++i) {
    policy.yielded(now, now + 1ms);
    now += 1ms;
    EXPECT_EQ(policy.after_round(now + expected - 1us, true), Next::sleep);
    EXPECT_EQ(policy.after_round(now + expected, true), Next::yield);
    now += expected;
    expected = std::min(2 * expected, CoreContention::longest);
  }
}

TEST_F(PollPolicyTest, forgets_the_crowd_after_one_quick_yield) {
  for (int i = 0; i < 5; ++i) policy.yielded(now, now + 1ms);
  policy.yielded(now, now + 3us);
  policy.yielded(now, now + 1ms);
  EXPECT_EQ(policy.after_round(now + 1ms + CoreContention::shortest, true), Next::yield);
}

}  // namespace
}  // namespace weir::waiting
