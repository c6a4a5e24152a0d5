#include "waiting/poll_budget.hpp"

#include <gtest/gtest.h>

namespace weir::waiting {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class Budget : public ::testing::Test {
 protected:
  static constexpr microseconds longest{50};

  // A wait whose message comes after `gap`, if it is still looked for.
  void wait(microseconds gap) {
    budget_.begin(now_);
    const auto begun = now_;
    bool looks = true;
    while (looks && now_ - begun < gap) {
      now_ += microseconds(1);
      looks = budget_.look_again(now_);
    }
    looked_ = now_ - begun;
    now_ = std::max(now_, begun + gap);
  }
  bool looks() {
    budget_.begin(now_);
    return budget_.look_again(now_);
  }

  PollBudget budget_{longest};
  PollBudget::TimePoint now_{milliseconds(1000)};
  PollBudget::Duration looked_{};
};

TEST_F(Budget, it_is_twice_the_usual_gap_within_its_limits) {
  for (const auto& [gap, expected] : {std::pair{15, 30}, {2, 20}, {40, 50}}) {
    for (int i = 0; i < 100; ++i) wait(microseconds(gap));
    wait(milliseconds(1));
    EXPECT_NEAR(static_cast<double>(looked_.count()), expected * 1e3, 1.5e3) << gap;
  }
}

TEST_F(Budget, after_waits_in_vain_it_looks_now_and_then) {
  for (int i = 0; i < PollBudget::max_vain; ++i) wait(milliseconds(1));
  int waits = 0;
  for (int i = 0; i < 1000; ++i) {
    wait(milliseconds(1));
    waits += looked_ > PollBudget::Duration::zero() && looked_ > microseconds(2) ? 1 : 0;
  }
  EXPECT_GE(waits, 3);
  EXPECT_LE(waits, 10);
}

TEST_F(Budget, one_message_in_time_ends_a_rest) {
  for (int i = 0; i < 100; ++i) wait(milliseconds(1));
  for (int i = 0; i < PollBudget::longest_rest + 2; ++i) wait(microseconds(5));
  wait(microseconds(5));
  EXPECT_EQ(looked_, microseconds(5));
}

TEST_F(Budget, an_interrupt_is_not_charged) {
  budget_.begin(now_);
  now_ += microseconds(300);
  budget_.interrupted(microseconds(300));
  EXPECT_TRUE(budget_.look_again(now_));
}

TEST_F(Budget, a_lost_core_pauses_it_for_several_times_the_loss) {
  budget_.begin(now_);
  now_ += milliseconds(1);
  budget_.descheduled(now_, milliseconds(1));
  EXPECT_FALSE(budget_.look_again(now_));
  now_ += milliseconds(7);
  EXPECT_FALSE(looks());
  now_ += milliseconds(1);
  EXPECT_TRUE(looks());
}

TEST_F(Budget, a_core_that_is_lost_again_and_again_pauses_it_up_to_a_limit) {
  auto expected = PollBudget::first_pause;
  for (int i = 0; i < 8; ++i) {
    budget_.descheduled(now_, milliseconds(4));
    now_ += expected - milliseconds(1);
    EXPECT_FALSE(looks());
    now_ += milliseconds(1);
    EXPECT_TRUE(looks());
    expected = std::min(2 * expected, PollBudget::longest_pause);
  }
  now_ += 10 * PollBudget::longest_pause;
  budget_.descheduled(now_, milliseconds(4));
  now_ += PollBudget::first_pause;
  EXPECT_TRUE(looks());
}

}  // namespace
}  // namespace weir::waiting
