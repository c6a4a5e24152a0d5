// When the engine yields and when it sleeps, against a clock that only the test moves.
#include "rdma/poll_policy.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace weir::rdma {
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

TEST_F(PollPolicyTest, sleeps_at_once_after_a_yield_that_cost_a_time_slice) {
  policy.yielded(now, now + 4ms);
  now += 4ms;
  EXPECT_EQ(policy.after_round(now, true), Next::sleep);
  EXPECT_EQ(policy.after_round(now + PollPolicy::shortest_crowded - 1ms, true), Next::sleep);
  EXPECT_EQ(policy.after_round(now + PollPolicy::shortest_crowded, true), Next::yield) << "tries again";
}

TEST_F(PollPolicyTest, says_that_it_is_crowded_until_it_tries_again) {
  EXPECT_FALSE(policy.crowded());
  policy.yielded(now, now + 4ms);
  EXPECT_TRUE(policy.crowded());
  now += 4ms;
  policy.after_round(now + PollPolicy::shortest_crowded - 1ms, true);
  EXPECT_TRUE(policy.crowded());
  policy.after_round(now + PollPolicy::shortest_crowded, true);
  EXPECT_FALSE(policy.crowded());
}

TEST_F(PollPolicyTest, tries_again_ever_later_while_the_crowd_stays) {
  auto expected = PollPolicy::shortest_crowded;
  for (int i = 0; i < 12; ++i) {
    policy.yielded(now, now + 1ms);
    now += 1ms;
    EXPECT_EQ(policy.after_round(now + expected - 1us, true), Next::sleep);
    EXPECT_EQ(policy.after_round(now + expected, true), Next::yield);
    now += expected;
    expected = std::min(2 * expected, PollPolicy::longest_crowded);
  }
}

TEST_F(PollPolicyTest, forgets_the_crowd_after_one_quick_yield) {
  for (int i = 0; i < 5; ++i) policy.yielded(now, now + 1ms);
  policy.yielded(now, now + 3us);
  policy.yielded(now, now + 1ms);
  EXPECT_EQ(policy.after_round(now + 1ms + PollPolicy::shortest_crowded, true), Next::yield);
}

}  // namespace
}  // namespace weir::rdma
