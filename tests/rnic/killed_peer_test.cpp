// A peer whose process is killed at any point of a request, and the process that takes over its slot.
#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

using KilledPeer = TwoNics;

TEST_F(KilledPeer, a_killed_peer_fails_the_first_waiting_send_and_flushes_the_rest) {
  connect_pair();
  Memory from(a_nic, 64);
  ASSERT_EQ(a->send(1, from.all(), 0), PostResult::ok);
  ASSERT_EQ(a->send(2, from.all()), PostResult::ok);
  ASSERT_EQ(a->send(3, from.all(), 0), PostResult::ok);
  ASSERT_EQ(a->recv(4, {from.all()}), PostResult::ok);
  host.kill(b_nic);
  settle();
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::retry_exc_err));
  EXPECT_TRUE(completed(a->poll_send(), 2, WcStatus::wr_flush_err));
  EXPECT_TRUE(completed(a->poll_send(), 3, WcStatus::wr_flush_err));
  EXPECT_TRUE(completed(a->poll_recv(), 4, WcStatus::wr_flush_err));
  EXPECT_EQ(a->qp().state(), QpState::err);
}

TEST_F(KilledPeer, a_killed_peer_flushes_receives_after_what_it_had_delivered) {
  connect_pair();
  Memory from(b_nic, 64), to(a_nic, 64);
  from.fill(4);
  ASSERT_EQ(a->recv(1, {to.all()}), PostResult::ok);
  ASSERT_EQ(a->recv(2, {to.all()}), PostResult::ok);
  ASSERT_EQ(b->send(9, from.all()), PostResult::ok);
  a->recv_cq().arm(Armed::next);
  host.kill(b_nic);
  settle();
  EXPECT_EQ(a_nic.channel_events(2), 1) << "a sleeper must hear of it";
  EXPECT_TRUE(completed(a->poll_recv(), 1));
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
  EXPECT_TRUE(completed(a->poll_recv(), 2, WcStatus::wr_flush_err));
}

TEST_F(KilledPeer, a_peer_that_dies_during_a_copy_is_silent_and_not_faulty) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  host.on_copy = [] { return Peer::Transfer::gone; };
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  EXPECT_FALSE(a->poll_send());
  host.kill(b_nic);
  settle();
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::retry_exc_err));
}

TEST_F(KilledPeer, a_peer_that_closed_before_its_end_causes_no_errors) {
  connect_pair();
  Memory from(b_nic, 64), to(a_nic, 64);
  ASSERT_EQ(a->recv(1, {to.all()}), PostResult::ok);
  ASSERT_EQ(a->recv(2, {to.all()}), PostResult::ok);
  ASSERT_EQ(b->send(9, from.all()), PostResult::ok);
  b->destroy_qp();
  host.kill(b_nic);
  settle();
  EXPECT_TRUE(completed(a->poll_recv(), 1));
  EXPECT_FALSE(a->poll_recv());
  EXPECT_EQ(a->qp().state(), QpState::rts);
}

TEST_F(KilledPeer, only_queue_pairs_of_the_killed_process_notice) {
  connect_pair();
  Nic& c_nic = host.add_nic();
  Endpoint one(a_nic), c(c_nic);
  connect(one, c);
  host.kill(b_nic);
  settle();
  EXPECT_EQ(a->qp().state(), QpState::err);
  EXPECT_EQ(one.qp().state(), QpState::rts);
}

// What a process leaves behind that is killed inside a copy: its hazard on our queue pair. Nobody may wait
// for it, even when another process has come to live in its slot.
TEST_F(KilledPeer, the_hazard_of_a_killed_initiator_holds_up_nobody) {
  connect_pair();
  Memory other(b_nic, 64);
  QpContext& context = b_nic.adapter().segment().header().qps[b->qpn().index()];
  context.hazard.store(1);
  host.kill(a_nic);
  settle();
  Nic& reborn = host.replace(a_nic);
  Endpoint one(reborn), two(b_nic);
  connect(one, two);
  other.deregister();
  b->destroy_qp();
}

TEST_F(KilledPeer, a_new_process_in_the_slot_of_a_killed_one_can_connect) {
  connect_pair();
  host.kill(b_nic);
  settle();
  Nic& reborn = host.replace(b_nic);
  Endpoint one(a_nic), two(reborn);
  connect(one, two);
  Memory from(a_nic, 64), to(reborn, 64);
  from.fill(6);
  ASSERT_EQ(one.write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  EXPECT_TRUE(completed(one.poll_send(), 1));
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
}

}  // namespace
}  // namespace weir::rnic::test
