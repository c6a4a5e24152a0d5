// How many looks in vain a round has, by a clock that moves with each look.
#include "waiting/vain_tries.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace weir::waiting {
namespace {

using namespace std::chrono_literals;

struct Looker {
  std::chrono::nanoseconds a_look;
  VainTries::TimePoint now{1h};

  int looks(VainTries& tries) {
    int count = 0;
    do {
      ++count;
      now += a_look;
    } while (tries.again([&] { return now; }));
    return count;
  }
};

TEST(VainTries, end_by_number_or_by_time) {
  struct Case {
    std::chrono::nanoseconds a_look;
    int limit, looks;
    bool slow;
  };
  for (const auto& [a_look, limit, looks, slow] :
       {Case{20ns, 100, 100, false}, Case{39ns, 100, 100, false}, Case{1us, 100, 4, true},
        Case{600ns, 100, 8, true}, Case{8us, 100, 4, true}, Case{1ms, 1, 1, false}}) {
    Looker looker{a_look};
    VainTries tries(limit, looker.now);
    EXPECT_EQ(looker.looks(tries), looks) << a_look.count() << " ns a look";
    EXPECT_EQ(tries.slow(), slow) << a_look.count() << " ns a look";
  }
}

TEST(VainTries, begin_anew_after_something_was_found) {
  Looker looker{1us};
  VainTries tries(100, looker.now);
  for (int i = 0; i < 3; ++i) {
    looker.now += 1us;
    EXPECT_TRUE(tries.again([&] { return looker.now; }));
  }
  tries.found(looker.now);
  EXPECT_EQ(looker.looks(tries), 4);
}

}  // namespace
}  // namespace weir::waiting
