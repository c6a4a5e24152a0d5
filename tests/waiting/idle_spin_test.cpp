// How long the loop polls before it sleeps, by a clock that only the test moves; and that a
// loop without work ends.
#include "waiting/idle_spin.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "waiting/spin_policy.hpp"

namespace weir::waiting {
namespace {

using namespace std::chrono_literals;

struct SpinPolicyTest : testing::Test {
  SpinPolicy policy{50us};
  SpinPolicy::TimePoint now{1h};

  // Input, then nothing for longer than the policy looks: did it look at all?
  bool spins_in_vain() {
    const bool spun = policy.worked(now);
    EXPECT_FALSE(policy.look_again(now + 50us));
    now += 1ms;
    return spun;
  }
  int rests_until_it_spins() {
    int rests = 0;
    while (!spins_in_vain()) ++rests;
    return rests;
  }
};

TEST_F(SpinPolicyTest, looks_for_a_while_after_input_and_then_sleeps) {
  EXPECT_FALSE(policy.look_again(now)) << "nothing came yet";
  EXPECT_TRUE(policy.worked(now));
  EXPECT_TRUE(policy.look_again(now + 49us));
  EXPECT_FALSE(policy.look_again(now + 50us));
  EXPECT_FALSE(policy.look_again(now)) << "asleep until input comes";
}

TEST_F(SpinPolicyTest, looks_on_from_the_last_input) {
  policy.worked(now);
  policy.worked(now + 40us);
  EXPECT_TRUE(policy.look_again(now + 80us));
}

TEST_F(SpinPolicyTest, never_looks_when_it_is_turned_off) {
  SpinPolicy off(0us);
  EXPECT_FALSE(off.worked(now));
  EXPECT_FALSE(off.look_again(now));
}

TEST_F(SpinPolicyTest, rests_twice_as_long_each_time_that_spins_are_in_vain) {
  for (int i = 0; i < SpinPolicy::most_vain; ++i) EXPECT_TRUE(spins_in_vain());
  for (int rest = SpinPolicy::shortest_rest; rest <= SpinPolicy::longest_rest; rest *= 2)
    EXPECT_EQ(rests_until_it_spins(), rest - 1);
  EXPECT_EQ(rests_until_it_spins(), SpinPolicy::longest_rest - 1) << "and no longer";
}

TEST_F(SpinPolicyTest, forgets_what_was_in_vain_once_a_spin_pays) {
  for (int i = 0; i < SpinPolicy::most_vain; ++i) spins_in_vain();
  rests_until_it_spins();  // in vain again, so it rests longer now
  while (!policy.worked(now)) now += 1ms;
  EXPECT_TRUE(policy.worked(now + 10us));
  EXPECT_FALSE(policy.look_again(now + 60us));
  now += 1ms;
  for (int i = 1; i < SpinPolicy::most_vain; ++i) EXPECT_TRUE(spins_in_vain());
  EXPECT_EQ(rests_until_it_spins(), SpinPolicy::shortest_rest - 1);
}

TEST_F(SpinPolicyTest, sleeps_at_once_where_a_yield_took_long) {
  policy.worked(now);
  policy.yielded(now, now + 4ms);
  EXPECT_FALSE(policy.look_again(now + 4ms));
  EXPECT_FALSE(policy.worked(now + 5ms)) << "the crowd is here";
  EXPECT_TRUE(policy.worked(now + 4ms + CoreContention::shortest));
}

TEST(IdleSpinTest, lets_the_loop_end_when_nothing_more_comes) {
  asio::io_context io;
  IdleSpin spin(io, 50us, [] { return false; });
  spin.worked();
  EXPECT_GT(io.run(), 0u) << "it looked";
}

TEST(IdleSpinTest, leaves_the_looking_to_others_that_poll) {
  asio::io_context io;
  IdleSpin spin(io, std::chrono::hours(1), [] { return true; });
  spin.worked();
  io.run();  // would take an hour
}

TEST(IdleSpinTest, may_go_while_a_turn_waits_in_the_loop) {
  asio::io_context io;
  {
    IdleSpin spin(io, std::chrono::hours(1), [] { return false; });
    spin.worked();
  }
  EXPECT_EQ(io.run(), 1u);
}

}  // namespace
}  // namespace weir::waiting
