// Which weaknesses a failing program needs.
#include "cli/weir/seeds/shrink.hpp"

#include <gtest/gtest.h>

namespace weir::command {
namespace {

using rnic::weak::bit;
using rnic::weak::Plan;
using enum rnic::weak::Weakness;
using Weaknesses = std::vector<rnic::weak::Weakness>;

TEST(Shrink, one_weakness_that_is_enough_is_found_alone) {
  const Needed needed =
      shrink({.seed = 7}, [](const Plan& plan) { return plan.seed == 7 && plan.has(lines); });
  EXPECT_EQ(needed.alone, Weaknesses{lines});
  EXPECT_TRUE(needed.together.empty());
}

TEST(Shrink, each_of_several_that_are_enough_is_found) {
  const Needed needed = shrink({}, [](const Plan& plan) { return plan.has(lines) || plan.has(delay); });
  EXPECT_EQ(needed.alone, (Weaknesses{delay, lines}));
}

TEST(Shrink, two_that_are_needed_together_are_found) {
  const Needed needed =
      shrink({}, [](const Plan& plan) { return plan.has(unfenced) && plan.has(completions); });
  EXPECT_TRUE(needed.alone.empty());
  EXPECT_EQ(needed.together, (Weaknesses{unfenced, completions}));
}

TEST(Shrink, a_failure_that_does_not_come_again_names_none) {
  const Needed needed = shrink({}, [](const Plan&) { return false; });
  EXPECT_TRUE(needed.alone.empty());
  EXPECT_TRUE(needed.together.empty());
}

TEST(Shrink, tries_only_what_the_failing_run_had) {
  const Plan failed{1, bit(delay) | bit(lines)};
  (void)shrink(failed, [&](const Plan& plan) {
    EXPECT_EQ(plan.weaknesses & ~failed.weaknesses, 0u);
    return true;
  });
}

}  // namespace
}  // namespace weir::command
