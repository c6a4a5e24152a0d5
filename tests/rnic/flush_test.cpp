// What follows an error: work requests are flushed in order (IBA 10.3.1); and unreliable
// connections, which report few errors.
#include "errors.hpp"

namespace weir::rnic::test {
namespace {

// ---- flush

TEST_F(Errors, moving_to_error_flushes_sends_and_receives_in_order) {
  connect_pair();
  Memory from(a_nic, 64), to(a_nic, 64);
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_EQ(a->send(i, from.all(), 0), PostResult::ok);
  for (std::uint64_t i = 10; i < 15; ++i) ASSERT_EQ(a->recv(i, {to.all()}), PostResult::ok);
  a->modify(QpState::err);
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_TRUE(completed(a->poll_send(), i, WcStatus::wr_flush_err));
  for (std::uint64_t i = 10; i < 15; ++i) EXPECT_TRUE(completed(a->poll_recv(), i, WcStatus::wr_flush_err));
  EXPECT_FALSE(a->poll_send());
  EXPECT_FALSE(a->poll_recv());
  ASSERT_EQ(a->recv(20, {to.all()}), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_recv(), 20, WcStatus::wr_flush_err));
}

// As a change of attributes does that was checked while the queue pair was still well.
struct RacedChange {
  const char* name;
  QpState from, to;
  bool reported_first;  // the error is reported before the change
};
class RacedChanges : public Errors, public testing::WithParamInterface<RacedChange> {};

TEST_P(RacedChanges, leave_a_queue_pair_that_a_refused_message_failed_in_error_and_flushed) {
  const auto& row = GetParam();
  a = std::make_unique<Endpoint>(a_nic);
  b = std::make_unique<Endpoint>(b_nic);
  b->to_rtr(a->qpn());
  a->to_rts(b->qpn());
  if (row.from == QpState::rts) b->modify(QpState::rts);
  Memory from(a_nic, 64), to(b_nic, 64);
  ASSERT_EQ(b->recv(1, {to.all()}), PostResult::ok);
  ASSERT_EQ(a->write(2, from.all(), to.addr(), to.key() ^ 1), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 2, WcStatus::rem_access_err));
  if (row.reported_first) settle();
  EXPECT_TRUE(b->modify(row.to));
  EXPECT_EQ(b->qp().state(), QpState::err);
  settle();
  EXPECT_EQ(b->qp().state(), QpState::err);
  EXPECT_TRUE(completed(b->poll_recv(), 1, WcStatus::wr_flush_err));
  const auto events = b_nic.async_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].event, AsyncEvent::qp_access_error);
}

INSTANTIATE_TEST_SUITE_P(Errors, RacedChanges,
                         testing::Values(RacedChange{"rtr_to_rts", QpState::rtr, QpState::rts, false},
                                         RacedChange{"rtr_to_rts_reported", QpState::rtr, QpState::rts, true},
                                         RacedChange{"rts_to_rts", QpState::rts, QpState::rts, false},
                                         RacedChange{"rts_to_rts_reported", QpState::rts, QpState::rts, true},
                                         RacedChange{"rts_to_sqd", QpState::rts, QpState::sqd, false}),
                         [](const auto& one) { return one.param.name; });

TEST_F(Errors, what_was_delivered_before_an_error_is_polled_before_the_flushes) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  from.fill(6);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(b->recv(i, {to.all()}), PostResult::ok);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  ASSERT_EQ(a->send(2, from.all()), PostResult::ok);
  b->modify(QpState::err);
  EXPECT_TRUE(completed(b->poll_recv(), 0));
  EXPECT_TRUE(completed(b->poll_recv(), 1));
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
  EXPECT_TRUE(completed(b->poll_recv(), 2, WcStatus::wr_flush_err));
  EXPECT_TRUE(completed(b->poll_recv(), 3, WcStatus::wr_flush_err));
  EXPECT_FALSE(b->poll_recv());
}

TEST_F(Errors, a_batch_that_fails_in_the_middle_completes_flushes_and_keeps_its_order) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  from.fill(1);
  PostResult result;
  a->qp().begin_posting();
  for (std::uint64_t i = 0; i < 6; ++i) {
    const std::uint32_t rkey = i == 3 ? to.key() ^ 1 : to.key();
    SendWqe* wqe = a->qp().append({.wr_id = i,
                                   .opcode = SendOpcode::rdma_write,
                                   .flags = i % 2 == 0 ? send_flag::signaled : 0,
                                   .remote_addr = to.addr(),
                                   .rkey = rkey},
                                  result);
    ASSERT_NE(wqe, nullptr);
    const Sge sge = from.all();
    ASSERT_EQ(a->qp().set_sges(*wqe, {&sge, 1}), PostResult::ok);
  }
  a->qp().ring_doorbell();
  EXPECT_TRUE(completed(a->poll_send(), 0));
  EXPECT_TRUE(completed(a->poll_send(), 2));
  EXPECT_TRUE(completed(a->poll_send(), 3, WcStatus::rem_access_err));
  EXPECT_TRUE(completed(a->poll_send(), 4, WcStatus::wr_flush_err));
  EXPECT_TRUE(completed(a->poll_send(), 5, WcStatus::wr_flush_err));
  EXPECT_FALSE(a->poll_send());
}

// ---- unreliable connections

// UC has no acknowledgements: the sender learns of nothing (IBA 9.8.2).
TEST_F(Errors, uc_sends_that_cannot_be_delivered_complete_and_are_lost) {
  connect_pair({.type = QpType::uc});
  Memory from(a_nic, 64), to(b_nic, 64);
  from.fill(1);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1));
  ASSERT_EQ(b->recv(2, {to.all()}), PostResult::ok);
  settle();
  EXPECT_FALSE(b->poll_recv()) << "a lost message came back";
  ASSERT_EQ(a->send(3, from.all()), PostResult::ok);
  EXPECT_TRUE(completed(b->poll_recv(), 2));
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
}

TEST_F(Errors, uc_writes_that_are_refused_complete_and_change_nothing) {
  connect_pair({.type = QpType::uc});
  Memory from(a_nic, 64), to(b_nic, 64);
  from.fill(1);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key() ^ 1), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1));
  EXPECT_EQ(a->qp().state(), QpState::rts);
  EXPECT_EQ(to.part(0, 64), std::vector<std::byte>(64));
  settle();
  ASSERT_EQ(a->write(2, from.all(), to.addr(), to.key()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 2));
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
}

TEST_F(Errors, uc_sends_longer_than_the_receive_are_dropped_and_leave_it_posted) {
  connect_pair({.type = QpType::uc});
  Memory from(a_nic, 64), to(b_nic, 64);
  from.fill(1);
  ASSERT_EQ(b->recv(1, {to.sge(0, 40)}), PostResult::ok);
  ASSERT_EQ(a->send(2, from.all()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 2));
  settle();
  EXPECT_FALSE(b->poll_recv());
  ASSERT_EQ(a->send(3, from.sge(0, 40)), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 3));
  EXPECT_TRUE(completed(b->poll_recv(), 1));
}

TEST_F(Errors, uc_local_faults_are_reported) {
  connect_pair({.type = QpType::uc});
  Memory from(a_nic, 64);
  ASSERT_EQ(a->send(1, from.sge(1, 64)), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::loc_prot_err));
}

TEST_F(Errors, uc_to_nobody_completes) {
  Endpoint one(a_nic, {.type = QpType::uc});
  one.to_rts(Qpn(1000, 5));
  Memory from(a_nic, 64);
  ASSERT_EQ(one.send(1, from.all()), PostResult::ok);
  EXPECT_TRUE(completed(one.poll_send(), 1));
}

}  // namespace
}  // namespace weir::rnic::test
