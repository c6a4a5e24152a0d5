// Errors of the send queue alone: how unreliable queue pairs enter and leave SQE, and SQD with its event.
#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

class SendError : public TwoNics, public testing::WithParamInterface<QpType> {
 protected:
  SendError() {
    if (GetParam() == QpType::uc) {
      connect_pair({.type = QpType::uc});
      return;
    }
    a = std::make_unique<Endpoint>(a_nic, EndpointOptions{.type = QpType::ud});
    b = std::make_unique<Endpoint>(b_nic, EndpointOptions{.type = QpType::ud});
    a->to_rts(Qpn());
    b->to_rts(Qpn());
  }
  SendRequest request(std::uint64_t id, Endpoint& to) const {
    return {.wr_id = id, .flags = send_flag::signaled, .datagram = {to.qpn(), 0x1234, nullptr}};
  }
  Sge no_such_region() const { return {from.addr(), 8, from.key() ^ 1}; }
  Sge room(Memory& memory) const { return memory.all(); }

  Memory from{a_nic, 64}, into_a{a_nic, 128}, into_b{b_nic, 128};
};
INSTANTIATE_TEST_SUITE_P(Of, SendError, testing::Values(QpType::uc, QpType::ud),
                         [](const auto& param_info) { return param_info.param == QpType::uc ? "uc" : "ud"; });

TEST_P(SendError, stops_the_send_queue_and_flushes_what_comes) {
  ASSERT_EQ(a->post(request(1, *b), {no_such_region()}), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::loc_prot_err));
  EXPECT_EQ(a->qp().state(), QpState::sqe);
  ASSERT_EQ(a->post(request(2, *b), {from.all()}), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 2, WcStatus::wr_flush_err));
  EXPECT_EQ(a->qp().state(), QpState::sqe);
  EXPECT_TRUE(a_nic.async_events().empty());
}

TEST_P(SendError, leaves_the_receive_queue_working) {
  ASSERT_EQ(a->post(request(1, *b), {no_such_region()}), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::loc_prot_err));
  ASSERT_EQ(a->recv(5, {room(into_a)}), PostResult::ok);
  EXPECT_FALSE(a->poll_recv()) << "not flushed";
  Memory theirs(b_nic, 8);
  ASSERT_EQ(b->post(request(6, *a), {theirs.all()}), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_recv(), 5));
}

TEST_P(SendError, is_left_by_modify_to_rts) {
  for (std::uint64_t round = 0; round < 3; ++round) {
    ASSERT_EQ(a->post(request(1, *b), {no_such_region()}), PostResult::ok);
    EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::loc_prot_err));
    a->modify(QpState::rts);
    EXPECT_EQ(a->qp().state(), QpState::rts);
    ASSERT_EQ(b->recv(7, {room(into_b)}), PostResult::ok);
    ASSERT_EQ(a->post(request(2, *b), {from.all()}), PostResult::ok);
    EXPECT_TRUE(completed(a->poll_send(), 2));
    EXPECT_TRUE(completed(b->poll_recv(), 7));
  }
}

TEST_P(SendError, goes_on_to_the_error_state_when_told) {
  ASSERT_EQ(a->recv(5, {room(into_a)}), PostResult::ok);
  ASSERT_EQ(a->post(request(1, *b), {no_such_region()}), PostResult::ok);
  a->modify(QpState::err);
  EXPECT_EQ(a->qp().state(), QpState::err);
  EXPECT_TRUE(completed(a->poll_recv(), 5, WcStatus::wr_flush_err));
}

TEST_P(SendError, of_what_was_posted_in_one_doorbell_flushes_the_rest) {
  PostResult result;
  a->qp().begin_posting();
  for (std::uint64_t id = 1; id <= 3; ++id) {
    SendWqe* wqe = a->qp().append(request(id, *b), result);
    ASSERT_NE(wqe, nullptr);
    const Sge sge = id == 1 ? no_such_region() : from.all();
    ASSERT_EQ(a->qp().set_sges(*wqe, {&sge, 1}), PostResult::ok);
  }
  a->qp().ring_doorbell();
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::loc_prot_err));
  EXPECT_TRUE(completed(a->poll_send(), 2, WcStatus::wr_flush_err));
  EXPECT_TRUE(completed(a->poll_send(), 3, WcStatus::wr_flush_err));
}

class Drain : public TwoNics {
 protected:
  Drain() { connect_pair(); }
  void to_sqd(bool event) {
    a->attributes().sqd_event = event;
    a->modify(QpState::sqd);
    a->attributes().sqd_event = false;
  }
  int drained_events() {
    int count = 0;
    for (const AsyncReport& report : a_nic.async_events())
      if (report.event == AsyncEvent::sq_drained && report.qp == &a->qp()) ++count;
    return count;
  }
  Memory from{a_nic, 64}, into{b_nic, 64};
};

TEST_F(Drain, of_an_idle_queue_is_reported_at_once_and_only_if_asked_for) {
  to_sqd(false);
  EXPECT_EQ(drained_events(), 0);
  a->modify(QpState::rts);
  to_sqd(true);
  EXPECT_EQ(drained_events(), 1);
  EXPECT_FALSE(a->qp().draining());
  a->modify(QpState::rts);
  EXPECT_EQ(drained_events(), 0);
}

TEST_F(Drain, waits_for_the_request_under_way_and_keeps_those_behind_it) {
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);  // parked: no receive
  ASSERT_EQ(a->send(2, from.all()), PostResult::ok);
  to_sqd(true);
  EXPECT_TRUE(a->qp().draining());
  EXPECT_EQ(drained_events(), 0);
  ASSERT_EQ(b->recv(5, {into.all()}), PostResult::ok);
  ASSERT_EQ(b->recv(6, {into.all()}), PostResult::ok);
  settle();
  EXPECT_TRUE(completed(a->poll_send(), 1));
  EXPECT_FALSE(a->poll_send());
  EXPECT_FALSE(a->qp().draining());
  EXPECT_EQ(drained_events(), 1);
  ASSERT_EQ(a->send(3, from.all()), PostResult::ok);
  EXPECT_FALSE(a->poll_send()) << "sqd takes requests and executes none";
  ASSERT_EQ(b->recv(7, {into.all()}), PostResult::ok);
  a->modify(QpState::rts);
  EXPECT_TRUE(completed(a->poll_send(), 2));
  EXPECT_TRUE(completed(a->poll_send(), 3));
}

TEST_F(Drain, still_receives) {
  to_sqd(false);
  Memory theirs(b_nic, 8), mine(a_nic, 8);
  ASSERT_EQ(a->recv(5, {mine.all()}), PostResult::ok);
  ASSERT_EQ(b->send(6, theirs.all()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_recv(), 5));
}

TEST_F(Drain, that_ends_in_an_error_reports_no_drain) {
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  to_sqd(true);
  a->modify(QpState::err);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::wr_flush_err));
  EXPECT_EQ(drained_events(), 0);
  EXPECT_FALSE(a->qp().draining());
}

// A fence (IBV_SEND_FENCE) holds a request back until the READs and atomics before it are over. Here every
// request waits for the one before it, so there is nothing to hold back: the fenced SEND carries what the
// READ in front of it fetched, with the flag and without.
TEST_F(Drain, a_fenced_send_carries_what_the_read_before_it_fetched) {
  for (const std::uint32_t flags : {0u, send_flag::fence}) {
    Memory remote(b_nic, 64), scratch(a_nic, 64);
    remote.fill(flags + 1);
    ASSERT_EQ(b->recv(5, {into.all()}), PostResult::ok);
    PostResult result;
    a->qp().begin_posting();
    const Sge sge = scratch.all();
    SendWqe* wqe = a->qp().append(
        {.wr_id = 1, .opcode = SendOpcode::rdma_read, .remote_addr = remote.addr(), .rkey = remote.key()},
        result);
    ASSERT_EQ(a->qp().set_sges(*wqe, {&sge, 1}), PostResult::ok);
    wqe = a->qp().append({.wr_id = 2, .flags = send_flag::signaled | flags}, result);
    ASSERT_EQ(a->qp().set_sges(*wqe, {&sge, 1}), PostResult::ok);
    a->qp().ring_doorbell();
    EXPECT_TRUE(completed(a->poll_send(), 2));
    ASSERT_TRUE(completed(b->poll_recv(), 5));
    EXPECT_EQ(into.part(0, 64), remote.part(0, 64));
  }
}

}  // namespace
}  // namespace weir::rnic::test
