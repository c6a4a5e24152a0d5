// After which polls in vain a thread gives its processor away, and beside whom it does not.
#include "waiting/poll_yield.hpp"

#include <gtest/gtest.h>

namespace weir::waiting {
namespace {

class PollYieldTest : public testing::Test {
 protected:
  using TimePoint = CoreContention::TimePoint;

  // Returns how many of so many polls in a row yielded.
  int yields_in(std::uint32_t polls) {
    int yields = 0;
    for (std::uint32_t i = 1; i <= polls; ++i)
      yields += rule_.polled_in_vain(
          i, way_, [&] { return other_is_here_; }, [&] { now_ += yield_lasts_; }, [&] { return now_; });
    return yields;
  }

  PollYield::Way way_ = PollYield::Way::memory;
  bool other_is_here_ = false;
  std::chrono::microseconds yield_lasts_{1};
  TimePoint now_{std::chrono::hours(1)};
  PollYield rule_;
};

TEST_F(PollYieldTest, yields_after_many_polls_in_a_row) {
  EXPECT_EQ(yields_in(PollYield::polls_before - 1), 0);
  EXPECT_EQ(yields_in(10 * PollYield::polls_before), 10);
}

TEST_F(PollYieldTest, yields_sooner_when_the_other_side_needs_this_processor) {
  other_is_here_ = true;
  EXPECT_EQ(yields_in(PollYield::polls_before), PollYield::polls_before / PollYield::polls_beside_other);
}

TEST_F(PollYieldTest, polls_on_after_a_yield_that_took_a_slice_of_another_program) {
  yield_lasts_ = std::chrono::milliseconds(3);
  EXPECT_EQ(yields_in(1'000 * PollYield::polls_before), 1);
}

TEST_F(PollYieldTest, yields_in_any_crowd_for_what_comes_through_the_kernel) {
  way_ = PollYield::Way::kernel;
  yield_lasts_ = std::chrono::milliseconds(3);
  EXPECT_EQ(yields_in(10 * PollYield::polls_before), 10);
}

TEST_F(PollYieldTest, tries_a_yield_again_later) {
  yield_lasts_ = std::chrono::milliseconds(3);
  yields_in(PollYield::polls_before);
  now_ += CoreContention::shortest;
  yield_lasts_ = std::chrono::microseconds(1);
  EXPECT_EQ(yields_in(10 * PollYield::polls_before), 10);
}

TEST_F(PollYieldTest, yields_to_the_other_side_in_any_crowd) {
  yield_lasts_ = std::chrono::milliseconds(3);
  yields_in(PollYield::polls_before);
  other_is_here_ = true;
  EXPECT_EQ(yields_in(10 * PollYield::polls_beside_other), 10);
}

}  // namespace
}  // namespace weir::waiting
