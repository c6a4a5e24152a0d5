// Rate limits between hosts, on the test's own clock.
#include "two_hosts.hpp"

namespace weir::rnic::test {
namespace {

constexpr std::uint32_t byte_a_us = 8'000;  // in kb/s
constexpr std::uint64_t us = 1'000;
constexpr std::uint64_t long_ago = 1'000'000'000;

class RateOfPackets : public TwoHosts, public testing::WithParamInterface<QpType> {
 protected:
  void SetUp() override {
    host.advance(long_ago);
    connect_hosts({.type = GetParam()}, {.type = GetParam()});
    limit({.kbps = byte_a_us, .burst_bytes = 1});
  }
  void limit(RateLimit rate) {
    a->attributes().rate = rate;
    ASSERT_TRUE(a->modify(QpState::rts));
  }
  void write(std::uint64_t count) {
    for (std::uint64_t id = 0; id < count; ++id)
      ASSERT_EQ(a->write(id, from.all(), to.addr(), to.key()), PostResult::ok);
  }
  // WRITEs that have completed since the last call, as much time having passed.
  std::size_t done_after(std::uint64_t ns) {
    host.advance(ns);
    carry();
    return Endpoint::drain(a->send_cq()).size();
  }

  Memory from{a_nic, 100, all_access, Reach::mapped}, to{b_nic, 100, all_access, Reach::mapped};
};

INSTANTIATE_TEST_SUITE_P(Services, RateOfPackets, testing::Values(QpType::rc, QpType::uc),
                         [](const auto& one) { return one.param == QpType::rc ? "rc" : "uc"; });

TEST_P(RateOfPackets, holds_each_message_back_by_what_the_one_before_takes) {
  write(3);
  EXPECT_EQ(done_after(0), 1u);
  EXPECT_EQ(done_after(98 * us), 0u);
  EXPECT_EQ(done_after(1 * us), 1u) << "100 bytes take 100 us, of which one byte may come early";
  EXPECT_EQ(done_after(99 * us), 0u);
  EXPECT_EQ(done_after(1 * us), 1u);
}

TEST_P(RateOfPackets, may_be_lifted_while_messages_wait) {
  write(3);
  EXPECT_EQ(done_after(0), 1u);
  limit({});
  EXPECT_EQ(done_after(0), 2u);
}

TEST_P(RateOfPackets, of_nothing_sent_recently_holds_nothing_back) {
  write(1);
  EXPECT_EQ(done_after(0), 1u);
  host.advance(1'000 * us);
  write(1);
  EXPECT_EQ(done_after(0), 1u);
}

// What is sent again is not held back for the rate, or a lost packet would stop the connection.
using LostPackets = TwoHosts;
TEST_F(LostPackets, are_not_charged_to_the_rate_again) {
  host.advance(long_ago);
  connect_hosts();
  a->attributes().rate = {.kbps = 8, .burst_bytes = 1};  // a message takes 100 ms
  ASSERT_TRUE(a->modify(QpState::rts));
  Memory from{a_nic, 100, all_access, Reach::mapped}, to{b_nic, 100, all_access, Reach::mapped};
  int lost = 0;
  drop = [&](const OnWire& packet) { return packet.destination == b_gid && lost++ < 3; };
  const std::uint64_t begun_ns = host.now_ns();
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  ASSERT_TRUE(carry_until([&] { return !Endpoint::drain(a->send_cq()).empty(); }));
  EXPECT_LT(host.now_ns() - begun_ns, 95'000 * us);
}

}  // namespace
}  // namespace weir::rnic::test
