#include "waiting/idle_core.hpp"

#include <gtest/gtest.h>

namespace weir::waiting {
namespace {

TEST(IdleCore, reads_how_many_threads_want_to_run) {
  struct Case {
    const char* text;
    std::optional<unsigned> runnable;
  };
  const Case cases[] = {{"0.20 0.18 0.12 1/80 11206\n", 1},
                        {"10.62 12.75 11.87 14/312 9\n", 14},
                        {"0.20 0.18 0.12 3", {}},
                        {"0.20 0.18 0.12 x/3 9", {}},
                        {"0.20 0.18", {}},
                        {"", {}},
                        {"0.2 0.1 0.1 99999999999/3 9", {}}};
  for (const Case& each : cases) EXPECT_EQ(runnable_in(each.text), each.runnable) << each.text;
}

std::optional<unsigned> runnable;
int asked = 0;
std::optional<unsigned> answer() {
  ++asked;
  return runnable;
}

TEST(IdleCore, is_there_while_no_more_threads_run_than_cores) {
  IdleCore core(2, answer);
  IdleCore::TimePoint now{std::chrono::hours(1)};
  struct Case {
    std::optional<unsigned> runnable;
    bool there;
  };
  for (const Case& each : {Case{1, true}, Case{2, true}, Case{3, false}, Case{{}, false}, Case{0, true}}) {
    runnable = each.runnable;
    EXPECT_EQ(core.is_there(now), each.there);
    now += IdleCore::between;
  }
}

TEST(IdleCore, asks_the_kernel_now_and_then) {
  IdleCore core(2, answer);
  IdleCore::TimePoint now{std::chrono::hours(1)};
  runnable = 1;
  asked = 0;
  EXPECT_TRUE(core.is_there(now));
  runnable = 9;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(core.is_there(now + std::chrono::microseconds(i)));
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(core.is_there(now + IdleCore::between));
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace weir::waiting
