// A requester that waits for a receive (RNR) or for the peer's answer, and what it does when that takes too
// long (IBA 9.7.5.2.8, 9.9.2.1).
#include <thread>

#include "errors.hpp"
#include "tests/give_others_time.hpp"

namespace weir::rnic::test {
namespace {

// ---- receiver not ready

// The encoded timer of the table is 0.64 ms (IBA table 45, code 12).
constexpr std::uint8_t timer_640_us = 12;
constexpr std::uint64_t timer_ns = 640'000;

class RnrRetry : public Errors, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Count, RnrRetry, testing::Range(1, 7));

TEST_P(RnrRetry, fails_when_the_retries_are_used_up_and_not_before) {
  const auto count = static_cast<std::uint8_t>(GetParam());
  connect_pair({.rnr_retry = count}, {.min_rnr_timer = timer_640_us});
  Memory from(a_nic, 64);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  host.advance(timer_ns * count - 1000);
  EXPECT_FALSE(a->poll_send());
  host.advance(2000);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::rnr_retry_exc_err));
  settle();
  EXPECT_EQ(b->qp().state(), QpState::rts) << "RNR is the requester's failure alone";
  expect_flushes_sends(*a, from.all());
}

TEST_P(RnrRetry, delivers_when_a_receive_comes_in_time) {
  const auto count = static_cast<std::uint8_t>(GetParam());
  connect_pair({.rnr_retry = count}, {.min_rnr_timer = timer_640_us});
  Memory from(a_nic, 64), to(b_nic, 64);
  from.fill(1);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  host.advance(timer_ns * count - 1000);
  ASSERT_EQ(b->recv(2, {to.all()}), PostResult::ok);
  settle();
  EXPECT_TRUE(completed(b->poll_recv(), 2))
      << "the post must finish the parked send, without any poll of the sender";
  EXPECT_TRUE(completed(a->poll_send(), 1));
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
}

TEST_F(Errors, rnr_retry_0_fails_at_once) {
  connect_pair({.rnr_retry = 0});
  Memory from(a_nic, 64);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::rnr_retry_exc_err));
}

TEST_F(Errors, a_patience_that_ends_at_once_is_seen_to_end) {
  connect_pair({.rnr_retry = 1}, {.min_rnr_timer = timer_640_us});
  Memory from(a_nic, 64);
  a_nic.behind_timer = [&] { host.advance(timer_ns); };  // while the posting thread is still on its way
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  host.advance(timer_ns);
  EXPECT_TRUE(completed(Endpoint::poll(a->send_cq()), 1, WcStatus::rnr_retry_exc_err));
}

TEST_F(Errors, rnr_retry_7_waits_for_ever) {
  connect_pair({.rnr_retry = 7}, {.min_rnr_timer = 1});
  Memory from(a_nic, 64), to(b_nic, 64);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  for (int i = 0; i < 100; ++i) {
    host.advance(1'000'000'000'000);
    a_nic.adapter().service();
    ASSERT_FALSE(a->poll_send());
  }
  ASSERT_EQ(b->recv(2, {to.all()}), PostResult::ok);
  settle();
  EXPECT_TRUE(completed(b->poll_recv(), 2));
  EXPECT_TRUE(completed(a->poll_send(), 1));
}

TEST_F(Errors, sends_behind_one_that_waits_wait_too_and_keep_their_order) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 640), written(b_nic, 64);
  from.fill(4);
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_EQ(a->send(i, from.sge(i, 1)), PostResult::ok);
  ASSERT_EQ(a->write(10, from.all(), written.addr(), written.key()), PostResult::ok);
  EXPECT_EQ(written.part(0, 64), std::vector<std::byte>(64)) << "a WRITE overtook a SEND";
  for (std::uint64_t i = 0; i < 10; ++i) {
    EXPECT_FALSE(a->poll_send());
    ASSERT_EQ(b->recv(i, {to.sge(i, 1)}), PostResult::ok);
    settle();
    ASSERT_TRUE(completed(b->poll_recv(), i));
    ASSERT_TRUE(completed(a->poll_send(), i));
  }
  EXPECT_TRUE(completed(a->poll_send(), 10));
  EXPECT_EQ(to.part(0, 10), from.part(0, 10));
  EXPECT_EQ(written.part(0, 64), from.part(0, 64));
}

TEST_F(Errors, each_waiting_send_has_retries_of_its_own) {
  connect_pair({.rnr_retry = 2}, {.min_rnr_timer = timer_640_us});
  Memory from(a_nic, 64), to(b_nic, 64);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  ASSERT_EQ(a->send(2, from.all()), PostResult::ok);
  host.advance(timer_ns * 3 / 2);
  ASSERT_EQ(b->recv(1, {to.all()}), PostResult::ok);
  settle();
  ASSERT_TRUE(completed(a->poll_send(), 1));
  host.advance(timer_ns * 3 / 2);
  EXPECT_FALSE(a->poll_send());
  host.advance(timer_ns);
  EXPECT_TRUE(completed(a->poll_send(), 2, WcStatus::rnr_retry_exc_err));
}

TEST_F(Errors, write_with_imm_waits_for_a_receive_and_plain_write_does_not) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1));
  ASSERT_EQ(a->post({.wr_id = 2,
                     .opcode = SendOpcode::rdma_write_with_imm,
                     .flags = send_flag::signaled,
                     .remote_addr = to.addr(),
                     .rkey = to.key()},
                    {from.all()}),
            PostResult::ok);
  EXPECT_FALSE(a->poll_send());
  ASSERT_EQ(b->recv(3), PostResult::ok);
  settle();
  EXPECT_TRUE(completed(a->poll_send(), 2));
  EXPECT_TRUE(completed(b->poll_recv(), 3));
}

// A kick may come while a batch is being built (ibv_wr_start ... ibv_wr_complete) or posted by another
// thread.
TEST_F(Errors, a_kick_that_meets_a_thread_posting_is_not_lost) {
  connect_pair({.rnr_retry = 7});
  Memory from(a_nic, 64), to(b_nic, 64);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  a->qp().begin_posting();
  ASSERT_EQ(b->recv(2, {to.all()}), PostResult::ok);
  std::thread progress([&] { settle(); });
  // Only gives the thread the chance to try; the outcome must be the same whether it did or not.
  give_others_time();
  a->qp().abort_posting();
  progress.join();
  EXPECT_TRUE(completed(b->poll_recv(), 2)) << "nobody polls at the sender: it may be asleep on its channel";
}

// ---- no response

// timeout 10: 4.096 us * 2^10, and one try more than retries.
constexpr std::uint64_t timeout_10_ns = 4096ull << 10;

TEST_F(Errors, a_target_that_is_not_ready_exceeds_the_retries_by_the_clock) {
  Endpoint one(a_nic, {.timeout = 10, .retry_cnt = 3}), two(b_nic);
  two.modify(QpState::init);
  one.to_rts(two.qpn());
  Memory from(a_nic, 64);
  ASSERT_EQ(one.send(1, from.all()), PostResult::ok);
  ASSERT_EQ(one.send(2, from.all(), 0), PostResult::ok);
  host.advance(timeout_10_ns * 3);
  EXPECT_FALSE(one.poll_send());
  host.advance(timeout_10_ns + 1000);
  EXPECT_TRUE(completed(one.poll_send(), 1, WcStatus::retry_exc_err));
  EXPECT_TRUE(completed(one.poll_send(), 2, WcStatus::wr_flush_err));
  EXPECT_FALSE(one.poll_send());
}

TEST_F(Errors, a_target_that_becomes_ready_in_time_gets_what_waited) {
  Endpoint one(a_nic, {.timeout = 10, .retry_cnt = 3}), two(b_nic);
  one.to_rts(two.qpn());
  Memory from(a_nic, 64), to(b_nic, 64);
  from.fill(2);
  ASSERT_EQ(one.write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  EXPECT_FALSE(one.poll_send());
  two.to_rtr(one.qpn());
  settle();
  EXPECT_TRUE(completed(one.poll_send(), 1)) << "ready to receive is enough";
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
}

// ---- a target whose process lives and has not come to copying (decision 0006)

class Late : public Errors, public testing::WithParamInterface<QpType> {
 protected:
  void SetUp() override {
    connect_pair({.type = GetParam(), .timeout = 10, .retry_cnt = 0}, {.type = GetParam()});
    host.on_copy = [this] { return is_late ? Peer::Transfer::late : Peer::Transfer::done; };
  }
  bool is_late = true;
};
INSTANTIATE_TEST_SUITE_P(Type, Late, testing::Values(QpType::rc, QpType::uc));

TEST_P(Late, uses_up_no_retries_and_loses_nothing) {
  Memory from(a_nic, 64), to(b_nic, 64);
  from.fill(1);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  ASSERT_EQ(a->write(2, from.all(), to.addr(), to.key()), PostResult::ok);
  for (int i = 0; i < 100; ++i) {
    host.advance(timeout_10_ns * 2);
    a_nic.adapter().service();
    ASSERT_FALSE(a->poll_send()) << i;
  }
  is_late = false;
  a_nic.adapter().service();
  EXPECT_TRUE(completed(a->poll_send(), 1));
  EXPECT_TRUE(completed(a->poll_send(), 2));
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
}

TEST_P(Late, is_over_when_the_target_dies) {
  Memory from(a_nic, 64), to(b_nic, 64);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  EXPECT_FALSE(a->poll_send());
  host.kill(b_nic);
  settle();
  const auto wc = a->poll_send();
  ASSERT_TRUE(wc);
  EXPECT_EQ(wc->status, GetParam() == QpType::rc ? WcStatus::retry_exc_err : WcStatus::wr_flush_err);
}

TEST_P(Late, is_over_when_the_target_leaves_the_connection) {
  Memory from(a_nic, 64), to(b_nic, 64);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  EXPECT_FALSE(a->poll_send());
  b->modify(QpState::err);
  a_nic.adapter().service();
  host.advance(timeout_10_ns + 1000);
  EXPECT_TRUE(
      completed(a->poll_send(), 1, GetParam() == QpType::rc ? WcStatus::retry_exc_err : WcStatus::success));
}

// A mapping that comes meanwhile would be faster than the copy that the target may yet make.
TEST_P(Late, with_a_copy_that_may_yet_be_made_is_tried_again_behind_that_copy) {
  const std::vector<std::pair<SendOpcode, std::size_t>> requests = {{SendOpcode::rdma_write, 64},
                                                                    {SendOpcode::send, 20'000}};
  for (const auto& [opcode, bytes] : requests) {
    Memory from(a_nic, bytes), to(b_nic, bytes);
    from.fill(3);
    int copies = 0;
    host.on_copy = [&] {
      return ++copies == 1 ? Peer::Transfer::unfinished
             : copies == 2 ? Peer::Transfer::late
                           : Peer::Transfer::done;
    };
    if (opcode == SendOpcode::send) {
      ASSERT_EQ(b->recv(5, {to.all()}), PostResult::ok);
    }
    const SendRequest request{.wr_id = 1,
                              .opcode = opcode,
                              .flags = send_flag::signaled,
                              .remote_addr = to.addr(),
                              .rkey = to.key()};
    ASSERT_EQ(a->post(request, {from.all()}), PostResult::ok);
    EXPECT_FALSE(a->poll_send());
    const_cast<TptEntry&>(b_nic.adapter().table().entry(to.key())).window = 1;
    for (int tries = 0; tries < 3; ++tries) a_nic.adapter().service();
    EXPECT_TRUE(completed(a->poll_send(), 1));
    EXPECT_EQ(copies, 3);
    EXPECT_EQ(to.part(0, bytes), from.part(0, bytes));
    ASSERT_EQ(a->write(2, from.all(), to.addr(), to.key()), PostResult::ok);
    EXPECT_TRUE(completed(a->poll_send(), 2));
    EXPECT_EQ(copies, 3) << "the next goes by the mapping";
  }
}

TEST_F(Errors, a_copy_that_the_target_does_not_make_uses_up_the_retries) {
  connect_pair({.timeout = 10, .retry_cnt = 3});
  Memory from(a_nic, 64), to(b_nic, 64);
  host.on_copy = [] { return Peer::Transfer::refused; };
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  host.advance(timeout_10_ns * 3);
  EXPECT_FALSE(a->poll_send());
  host.advance(timeout_10_ns + 1000);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::retry_exc_err));
}

TEST_F(Errors, a_target_connected_to_somebody_else_does_not_answer) {
  Endpoint one(a_nic, {.timeout = 10, .retry_cnt = 0}), two(b_nic), three(a_nic);
  connect(three, two);
  one.to_rts(two.qpn());
  Memory from(a_nic, 64), to(b_nic, 64);
  from.fill(1);
  ASSERT_EQ(one.write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  host.advance(timeout_10_ns + 1000);
  EXPECT_TRUE(completed(one.poll_send(), 1, WcStatus::retry_exc_err));
  EXPECT_EQ(to.part(0, 64), std::vector<std::byte>(64));
}

TEST_F(Errors, a_number_that_nobody_has_does_not_answer) {
  Memory from(a_nic, 64);
  for (const Qpn nobody : {Qpn(1000, 5), Qpn(b_nic.slot(), 9999), Qpn(0, 77), Qpn()}) {
    SCOPED_TRACE(nobody.value());
    Endpoint one(a_nic, {.timeout = 10, .retry_cnt = 0});
    one.to_rts(nobody);
    ASSERT_EQ(one.send(1, from.all()), PostResult::ok);
    host.advance(timeout_10_ns + 1000);
    EXPECT_TRUE(completed(one.poll_send(), 1, WcStatus::retry_exc_err));
  }
}

TEST_F(Errors, timeout_0_waits_for_ever) {
  Endpoint one(a_nic, {.timeout = 0, .retry_cnt = 0}), two(b_nic);
  one.to_rts(two.qpn());
  Memory from(a_nic, 64);
  ASSERT_EQ(one.send(1, from.all()), PostResult::ok);
  host.advance(1'000'000'000'000);
  one.nic().adapter().service();
  EXPECT_FALSE(one.poll_send());
}

TEST_F(Errors, a_target_in_the_error_state_does_not_answer) {
  connect_pair({.timeout = 10, .retry_cnt = 1});
  b->modify(QpState::err);
  Memory from(a_nic, 64);
  ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  host.advance(timeout_10_ns * 2 + 1000);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::retry_exc_err));
}

TEST_F(Errors, a_destroyed_target_does_not_answer) {
  connect_pair({.timeout = 10, .retry_cnt = 1});
  Memory from(a_nic, 64), to(b_nic, 64);
  b->destroy_qp();
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key()), PostResult::ok);
  host.advance(timeout_10_ns * 2 + 1000);
  EXPECT_TRUE(completed(a->poll_send(), 1, WcStatus::retry_exc_err));
  EXPECT_EQ(to.part(0, 64), std::vector<std::byte>(64));
}

}  // namespace
}  // namespace weir::rnic::test
