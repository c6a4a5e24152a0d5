// Which requests of other hosts wait for a listener when many ask for one.
#include "verbs/cm/requests/waiting_requests.hpp"

#include <gtest/gtest.h>

namespace weir::cm {
namespace {

RequestSource host(std::uint8_t last) {
  RequestSource source{.remote = true};
  source.address.back() = last;
  return source;
}

WaitingRequest asks(std::uint32_t id) {
  CmMessage message;
  message.local_id = id;
  return {nullptr, std::move(message)};
}

struct WaitingRequestsTest : testing::Test {
  WaitingRequests waiting;
  void fill(std::uint8_t from) {
    for (std::uint32_t id = 1; id <= WaitingRequests::max_waiting; ++id)
      EXPECT_NE(waiting.enter(host(from), asks(id)).number, 0u);
  }
};

TEST_F(WaitingRequestsTest, one_host_does_not_keep_others_out) {
  fill(1);
  const auto entered = waiting.enter(host(2), asks(100));
  ASSERT_NE(entered.number, 0u);
  EXPECT_EQ(waiting.find(entered.number)->message.local_id, 100u);
  ASSERT_TRUE(entered.leaves);
  EXPECT_EQ(entered.leaves->message.local_id, 1u);
}

TEST_F(WaitingRequestsTest, a_host_pushes_out_nothing_of_its_own) {
  fill(1);
  const auto entered = waiting.enter(host(1), asks(100));
  EXPECT_EQ(entered.number, 0u);
  EXPECT_FALSE(entered.leaves);
}

TEST_F(WaitingRequestsTest, a_host_with_its_share_gets_no_more) {
  fill(1);
  for (std::uint32_t id = 0; id < WaitingRequests::max_waiting / 2; ++id)
    EXPECT_NE(waiting.enter(host(2), asks(id)).number, 0u);
  EXPECT_EQ(waiting.enter(host(2), asks(100)).number, 0u);
}

TEST_F(WaitingRequestsTest, one_that_left_makes_room) {
  fill(1);
  EXPECT_EQ(waiting.leave(1)->message.local_id, 1u);
  EXPECT_EQ(waiting.find(1), nullptr);
  EXPECT_FALSE(waiting.leave(1));
  EXPECT_NE(waiting.enter(host(1), asks(100)).number, 0u);
}

}  // namespace
}  // namespace weir::cm
