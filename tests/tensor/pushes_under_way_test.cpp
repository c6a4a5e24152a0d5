// When a push that stands still ends, and which one makes room for another.
#include "tensor/hub/pushes_under_way.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace weir::tensor {
namespace {

using namespace std::chrono_literals;
using Limits = PushesUnderWay::Limits;

struct UnderWay : testing::Test {
  PushesUnderWay all{Limits{.bytes_per_source = 1000, .patience = 10s, .undisturbed = 1s}};
  const PushesUnderWay::TimePoint start{};
  struct One {
    PushesUnderWay::Stay stay;
    std::optional<std::uint64_t> arrived = 0;  // nothing: by RDMA
    std::optional<Errc> ended = {};
  };
  std::list<One> pushes;

  One& begins(std::chrono::nanoseconds at, std::uint64_t bytes = 100, const char* source = "10.0.0.1") {
    One& one = pushes.emplace_back();
    one.stay = all.enter({.source = source,
                          .bytes = bytes,
                          .arrived = [&one] { return one.arrived; },
                          .end =
                              [&one](const Error& why) {
                                one.ended = why.code;
                                one.stay = {};
                              }},
                         start + at);
    return one;
  }
};

TEST_F(UnderWay, push_of_which_nothing_comes_ends) {
  const One& one = begins(0s);
  all.end_late(start + 9999ms);
  EXPECT_FALSE(one.ended);
  all.end_late(start + 10s);
  EXPECT_EQ(one.ended, Errc::timed_out);
  EXPECT_TRUE(all.empty());
}

TEST_F(UnderWay, push_that_moves_goes_on) {
  One& one = begins(0s);
  for (int second = 9; second < 100; second += 9) {
    one.arrived = *one.arrived + 1;
    all.end_late(start + std::chrono::seconds(second));
  }
  EXPECT_FALSE(one.ended);
}

TEST_F(UnderWay, push_by_rdma_has_time_for_its_size) {
  One& one = begins(0s, std::uint64_t{640} << 20);
  one.arrived = std::nullopt;
  all.end_late(start + 19s);
  EXPECT_FALSE(one.ended);
  all.end_late(start + 21s);
  EXPECT_EQ(one.ended, Errc::timed_out);
}

TEST_F(UnderWay, one_that_stood_still_longest_makes_room) {
  One& moving = begins(0s);
  const One& still = begins(1s);
  const One& later = begins(2s);
  moving.arrived = 50;
  EXPECT_TRUE(all.make_room(start + 4s));
  EXPECT_EQ(still.ended, Errc::too_much);
  EXPECT_FALSE(moving.ended);
  EXPECT_FALSE(later.ended);
}

TEST_F(UnderWay, young_ones_are_not_disturbed) {
  begins(0s);
  EXPECT_FALSE(all.make_room(start + 999ms));
  EXPECT_TRUE(all.make_room(start + 1s));
  EXPECT_FALSE(all.make_room(start + 1s));
}

TEST_F(UnderWay, source_holds_no_more_than_its_share) {
  begins(0s, 600);
  EXPECT_FALSE(all.has_share_for("10.0.0.1", 401));
  EXPECT_TRUE(all.has_share_for("10.0.0.1", 400));
  EXPECT_TRUE(all.has_share_for("10.0.0.2", 1000));
  EXPECT_FALSE(all.has_share_for("10.0.0.2", ~std::uint64_t{0}));
  pushes.clear();
  EXPECT_EQ(all.bytes_of("10.0.0.1"), 0U);
  EXPECT_TRUE(all.has_share_for("10.0.0.1", 1000));
}

}  // namespace
}  // namespace weir::tensor
