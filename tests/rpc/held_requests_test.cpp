// Requests that wait at a full server: their order, what is removed with them, and their reported cost.
#include "rpc/server/held_requests.hpp"

#include <gtest/gtest.h>

#include <string>

#include "rpc/client/client_core.hpp"
#include "rpc/server/server_connection.hpp"

namespace weir::rpc {
namespace {

class HeldRequestsTest : public testing::Test {
 protected:
  HeldRequests held;
  HeldRequests::TimePoint now{std::chrono::hours(1)};

  HeldRequests::Waiting taken() { return held.take(now); }
  static Frame frame(FrameKind kind, std::uint64_t id, std::string_view body) {
    Frame made;
    made.header.kind = kind;
    made.header.id = id;
    made.body = as_bytes(body);
    return made;
  }
  void request(std::uint64_t id, std::string_view body = {}) {
    Frame made = frame(FrameKind::request, id, body);
    held.hold(made, now);
  }
  void item(std::uint64_t id, std::string_view body) {
    Frame made = frame(FrameKind::item, id, body);
    held.follow(made);
  }
  static std::string text(const HeldRequests::Held& one) {
    return {reinterpret_cast<const char*>(one.body.data()), one.body.size()};
  }
};

TEST_F(HeldRequestsTest, come_out_in_order_each_with_what_followed_it) {
  request(7, "first");
  request(8, "second");
  Frame token = frame(FrameKind::credentials, 8, "token");  // its number belongs to no request
  held.hold(token, now);
  request(9);
  item(8, "a");
  item(7, "b");
  item(8, "c");
  const auto first = taken();
  EXPECT_EQ(text(first.request), "first");
  ASSERT_EQ(first.followers.size(), 1u);
  EXPECT_EQ(text(first.followers[0]), "b");
  EXPECT_FALSE(held.contains(7));
  const auto second = taken();
  ASSERT_EQ(second.followers.size(), 2u);
  EXPECT_EQ(text(second.followers[1]), "c");
  EXPECT_EQ(text(taken().request), "token");
  EXPECT_EQ(taken().request.header.id, 9u);
  EXPECT_TRUE(held.empty());
}

TEST_F(HeldRequestsTest, have_so_much_less_time_as_they_waited) {
  using std::chrono::microseconds;
  struct Row {
    std::uint32_t timeout_us;
    microseconds waited;
    std::optional<std::uint32_t> left;
  };
  const Row rows[] = {{500, microseconds(0), 500},
                      {500, microseconds(499), 1},
                      {500, microseconds(500), std::nullopt},
                      {500, std::chrono::hours(2), std::nullopt},
                      {0, std::chrono::hours(2), 0},
                      {UINT32_MAX, std::chrono::hours(2), UINT32_MAX},
                      {UINT32_MAX - 1, std::chrono::hours(2), std::nullopt}};
  for (const Row& row : rows) {
    Frame made = frame(FrameKind::request, 7, "late?");
    made.header.timeout_us = row.timeout_us;
    held.hold(made, now);
    now += row.waited;
    const auto one = taken();
    EXPECT_EQ(one.late, !row.left) << row.timeout_us;
    if (row.left) {
      EXPECT_EQ(one.request.header.timeout_us, *row.left);
    }
  }
}

TEST_F(HeldRequestsTest, are_dropped_with_what_followed_them) {
  request(7);
  request(8);
  item(8, "a");
  EXPECT_TRUE(held.drop(8));
  EXPECT_FALSE(held.drop(8));
  EXPECT_FALSE(held.contains(8));
  EXPECT_EQ(taken().request.header.id, 7u);
  EXPECT_TRUE(held.empty());
}

TEST_F(HeldRequestsTest, cost_what_they_hold_and_nothing_when_they_are_gone) {
  const std::string body(1000, 'x');
  Frame large = frame(FrameKind::request, 7, body);
  large.attachment = Buffer(5000);
  held.hold(large, now);
  EXPECT_GE(held.bytes(), 6000u);
  const std::size_t one = held.bytes();
  request(8);
  EXPECT_GE(held.bytes(), one + frame_header_bytes) << "an empty one is not free";
  item(8, std::string(2000, 'y'));
  EXPECT_GE(held.bytes(), one + 2000);
  held.drop(8);
  EXPECT_EQ(held.bytes(), one);
  taken();
  EXPECT_EQ(held.bytes(), 0u);
  request(9);
  held.clear();
  EXPECT_EQ(held.bytes(), 0u);
  EXPECT_TRUE(held.empty());
}

// As many as a client may have in flight, so that it can cancel those that run.
TEST_F(HeldRequestsTest, small_ones_of_a_whole_client_fit_into_what_may_wait) {
  for (std::uint64_t id = 0; id < ConnectionLimits().max_in_flight; ++id) request(id, "of some arguments");
  EXPECT_LT(held.bytes(), ServerLimits().max_waiting_bytes);
}

}  // namespace
}  // namespace weir::rpc
