// Receives that their owner withholds on purpose: messages find none, though they are posted.
#include "two_hosts.hpp"

namespace weir::rnic::test {
namespace {

class WithheldReceive : public TwoHosts {
 protected:
  // Connects both, on one host or by packets, with three receives posted at b.
  void connect_with_receives(bool by_packets, const EndpointOptions& options = {}) {
    by_packets ? connect_hosts(options, options) : connect_pair(options);
    for (std::uint64_t id = 0; id < 3; ++id) ASSERT_EQ(b->recv(id, {to.sge(id * 8, 8)}), PostResult::ok);
    from.fill(1);
  }
  void send(std::uint64_t id) { ASSERT_EQ(a->send(id, from.sge(id * 8, 8)), PostResult::ok); }
  std::size_t received() {
    received_ += Endpoint::drain(b->recv_cq()).size();
    return received_;
  }

  Memory from{a_nic, 24, all_access, Reach::mapped}, to{b_nic, 24, all_access, Reach::mapped};

 private:
  std::size_t received_ = 0;
};

class OnBothPaths : public WithheldReceive, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Path, OnBothPaths, testing::Bool(),
                         [](const auto& path) { return path.param ? "packets" : "same_host"; });

TEST_P(OnBothPaths, message_waits_until_its_owner_lets_it_pass) {
  connect_with_receives(GetParam());
  b_nic.adapter().withhold_receives(b->qpn(), 2);
  for (std::uint64_t id = 0; id < 3; ++id) send(id);
  ASSERT_TRUE(carry_until([&] { return !b_nic.withheld.empty(); }));
  EXPECT_EQ(received(), 1u);
  b_nic.adapter().withhold_receives(b->qpn(), 3);
  ASSERT_TRUE(carry_until([&] { return b_nic.withheld.size() == 2; }));
  EXPECT_EQ(received(), 2u);
  b_nic.adapter().withhold_receives(b->qpn(), 0);
  ASSERT_TRUE(carry_until([&] { return received() == 3; }));
  EXPECT_EQ(to.part(0, 24), from.part(0, 24));
}

TEST_P(OnBothPaths, each_message_is_reported_once_however_often_tried) {
  connect_with_receives(GetParam());
  b_nic.adapter().withhold_receives(b->qpn(), 1);
  send(0);
  for (int i = 0; i < 50; ++i) {
    carry();
    EXPECT_FALSE(a->poll_send());
    host.advance(1'000'000);
  }
  EXPECT_EQ(b_nic.withheld, std::vector<std::uint32_t>{1});
}

TEST_P(OnBothPaths, sender_gives_up_when_its_rnr_retries_are_used_up) {
  connect_with_receives(GetParam(), {.rnr_retry = 2});
  b_nic.adapter().withhold_receives(b->qpn(), 1);
  send(0);
  std::optional<WorkCompletion> completion;
  ASSERT_TRUE(carry_until([&] { return (completion = a->poll_send()).has_value(); }));
  EXPECT_EQ(completion->status, WcStatus::rnr_retry_exc_err);
  EXPECT_EQ(b->qp().state(), QpState::rts);
}

TEST_P(OnBothPaths, requests_that_need_no_receive_pass) {
  connect_with_receives(GetParam());
  b_nic.adapter().withhold_receives(b->qpn(), 1);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  ASSERT_EQ(a->read(2, from.all(), to.addr(), to.key()), PostResult::ok);
  std::size_t done = 0;
  EXPECT_TRUE(carry_until([&] { return (done += Endpoint::drain(a->send_cq()).size()) == 2; }));
  EXPECT_TRUE(b_nic.withheld.empty());
}

TEST_F(WithheldReceive, receives_of_a_shared_queue_are_withheld_too) {
  SharedReceiveQueue* const srq = b_nic.adapter().create_srq(pd, 4, 1);
  connect_pair({}, {.srq = srq});
  const std::vector<Sge> into{to.sge(0, 8)};
  ASSERT_EQ(srq->post(1, into), SharedReceiveQueue::Posted::ok);
  b_nic.adapter().withhold_receives(b->qpn(), 1);
  send(0);
  settle();
  EXPECT_EQ(received(), 0u);
  b_nic.adapter().withhold_receives(b->qpn(), 0);
  settle();
  EXPECT_EQ(received(), 1u);
  b->destroy_qp();
  b_nic.adapter().destroy(srq);
}

}  // namespace
}  // namespace weir::rnic::test
