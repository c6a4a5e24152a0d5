// Posting: what is refused, the order in which receives are consumed, and how long a queue entry is in use.
#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

class Posting : public TwoNics {};

TEST_F(Posting, a_receive_of_more_than_4_gib_is_not_taken_for_a_short_one) {
  connect_pair();
  Memory from(a_nic, 64), to(b_nic, 64);
  from.fill(1);
  const std::uint32_t huge =
      b_nic.adapter().table().insert({to.addr(), to.addr(), 1ull << 33, all_access, pd, 0, 0}).value();
  const Sge half{to.addr(), 0x80000000, huge};
  ASSERT_EQ(b->recv(1, {half, half}), PostResult::ok);
  ASSERT_EQ(a->send(2, from.all()), PostResult::ok);
  ASSERT_TRUE(completed(b->poll_recv(), 1));
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
}

TEST_F(Posting, receives_are_consumed_in_the_order_of_posting) {
  connect_pair();
  Memory from(a_nic, 4), to(b_nic, 64 * 4);
  for (std::uint32_t lap = 0; lap < 5; ++lap) {
    for (std::uint32_t i = 0; i < 64; ++i) ASSERT_EQ(b->recv(1000 + i, {to.sge(i * 4, 4)}), PostResult::ok);
    for (std::uint32_t i = 0; i < 64; ++i) {
      std::memcpy(from.data(), &i, 4);
      ASSERT_EQ(a->send(i, from.all()), PostResult::ok);
    }
    for (std::uint32_t i = 0; i < 64; ++i) {
      ASSERT_TRUE(completed(a->poll_send(), i));
      ASSERT_TRUE(completed(b->poll_recv(), 1000 + i));
      EXPECT_EQ(std::memcmp(to.data() + i * 4, &i, 4), 0);
    }
  }
}

TEST_F(Posting, inline_data_is_taken_when_posted) {
  connect_pair();
  Memory to(b_nic, 256);
  std::vector<std::byte> payload(256, std::byte{0x5a});
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{36}, std::size_t{256}}) {
    to.clear();
    std::vector<std::byte> bytes(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(size));
    // No receive is posted yet: the request waits while its source changes.
    ASSERT_EQ(a->post_inline({.wr_id = 1, .flags = send_flag::signaled}, bytes), PostResult::ok);
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    ASSERT_EQ(b->recv(2, {to.all()}), PostResult::ok);
    settle();
    ASSERT_TRUE(completed(b->poll_recv(), 2));
    ASSERT_TRUE(completed(a->poll_send(), 1));
    EXPECT_EQ(to.part(0, size), std::vector<std::byte>(size, std::byte{0x5a}));
  }
}

TEST_F(Posting, inline_data_longer_than_asked_for_is_refused) {
  connect_pair();
  const std::vector<std::byte> payload(257);
  EXPECT_EQ(a->post_inline({.wr_id = 1}, payload), PostResult::too_long_inline);
  EXPECT_FALSE(a->poll_send());
}

TEST_F(Posting, more_sges_than_asked_for_are_refused) {
  connect_pair();
  Memory memory(a_nic, 64);
  EXPECT_EQ(a->post({.wr_id = 1}, std::vector<Sge>(5, memory.sge(0, 1))), PostResult::too_many_sges);
  EXPECT_EQ(a->recv(1, std::vector<Sge>(5, memory.sge(0, 1))), PostResult::too_many_sges);
}

TEST_F(Posting, unsignalled_sends_complete_silently) {
  connect_pair();
  Memory from(a_nic, 8), to(b_nic, 8);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key(), 0), PostResult::ok);
  EXPECT_FALSE(a->poll_send());
}

TEST_F(Posting, signal_all_reports_every_send) {
  connect_pair({.signal_all = true});
  Memory from(a_nic, 8), to(b_nic, 8);
  ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key(), 0), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 1));
}

TEST_F(Posting, unsignalled_sends_keep_their_entries_until_a_signalled_one_behind_them_is_polled) {
  connect_pair();
  Memory from(a_nic, 8), to(b_nic, 8);
  for (int lap = 0; lap < 3; ++lap) {
    for (int i = 0; i < 63; ++i) ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key(), 0), PostResult::ok);
    ASSERT_EQ(a->write(2, from.all(), to.addr(), to.key()), PostResult::ok);
    EXPECT_EQ(a->write(3, from.all(), to.addr(), to.key()), PostResult::full);
    EXPECT_TRUE(completed(a->poll_send(), 2));
    EXPECT_FALSE(a->poll_send());
  }
}

TEST_F(Posting, a_queue_full_of_unsignalled_sends_stays_full) {
  connect_pair();
  Memory from(a_nic, 8), to(b_nic, 8);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(a->write(1, from.all(), to.addr(), to.key(), 0), PostResult::ok);
  EXPECT_FALSE(a->poll_send());
  EXPECT_EQ(a->write(2, from.all(), to.addr(), to.key()), PostResult::full);
}

TEST_F(Posting, queues_hold_exactly_what_was_asked_for_even_if_no_power_of_two) {
  connect_pair({.caps = {.max_send_wr = 5, .max_recv_wr = 3, .max_send_sge = 1, .max_recv_sge = 1}});
  Memory from(a_nic, 8), to(b_nic, 8);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(a->send(1, from.all()), PostResult::ok);
  EXPECT_EQ(a->send(2, from.all()), PostResult::full);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(b->recv(1, {to.all()}), PostResult::ok);
  EXPECT_EQ(b->recv(2, {to.all()}), PostResult::full);
  settle();
  EXPECT_EQ(Endpoint::drain(b->recv_cq()).size(), 3u);
  EXPECT_EQ(Endpoint::drain(a->send_cq()).size(), 3u);
}

TEST_F(Posting, posting_is_refused_in_states_that_do_not_allow_it) {
  Endpoint one(a_nic), two(b_nic);
  Memory memory(a_nic, 8);
  EXPECT_EQ(one.send(1, memory.all()), PostResult::bad_state);
  EXPECT_EQ(one.recv(1, {memory.all()}), PostResult::bad_state);
  one.attributes().destination = two.qpn();
  one.modify(QpState::init);
  EXPECT_EQ(one.send(1, memory.all()), PostResult::bad_state);
  EXPECT_EQ(one.recv(1, {memory.all()}), PostResult::ok);
  one.modify(QpState::rtr);
  EXPECT_EQ(one.send(1, memory.all()), PostResult::bad_state);
  EXPECT_EQ(one.recv(2, {memory.all()}), PostResult::ok);
  one.modify(QpState::rts);
  EXPECT_EQ(one.send(3, memory.all()), PostResult::ok);
  one.modify(QpState::err);
  EXPECT_EQ(one.send(4, memory.all()), PostResult::ok)
      << "work requests posted in the error state are flushed";
  EXPECT_EQ(one.recv(5, {memory.all()}), PostResult::ok);
}

TEST_F(Posting, operations_that_a_type_does_not_have_are_refused) {
  Endpoint ud(a_nic, {.type = QpType::ud}), uc(a_nic, {.type = QpType::uc});
  ud.to_rts(Qpn());
  uc.to_rts(Qpn(2, 5));
  Memory memory(a_nic, 8);
  EXPECT_EQ(ud.write(1, memory.all(), 0, 0), PostResult::bad_opcode);
  EXPECT_EQ(ud.read(1, memory.all(), 0, 0), PostResult::bad_opcode);
  EXPECT_EQ(ud.post({.wr_id = 1, .opcode = SendOpcode::rdma_write_with_imm}, {}), PostResult::bad_opcode);
  EXPECT_EQ(uc.read(1, memory.all(), 0, 0), PostResult::bad_opcode);
  EXPECT_EQ(uc.post({.wr_id = 1, .opcode = static_cast<SendOpcode>(5)}, {}), PostResult::bad_opcode);
}

TEST_F(Posting, sends_posted_while_drained_wait_until_ready_to_send_again) {
  connect_pair();
  Memory from(a_nic, 8), to(b_nic, 8);
  ASSERT_EQ(b->recv(1, {to.all()}), PostResult::ok);
  a->modify(QpState::sqd);
  ASSERT_EQ(a->send(2, from.all()), PostResult::ok);
  settle();
  EXPECT_FALSE(a->poll_send());
  EXPECT_FALSE(b->poll_recv());
  a->modify(QpState::rts);
  EXPECT_TRUE(completed(a->poll_send(), 2));
  EXPECT_TRUE(completed(b->poll_recv(), 1));
}

TEST_F(Posting, a_drained_queue_pair_still_receives) {
  connect_pair();
  Memory from(a_nic, 8), to(b_nic, 8);
  b->modify(QpState::sqd);
  ASSERT_EQ(b->recv(1, {to.all()}), PostResult::ok);
  ASSERT_EQ(a->send(2, from.all()), PostResult::ok);
  EXPECT_TRUE(completed(b->poll_recv(), 1));
}

TEST_F(Posting, an_aborted_batch_posts_nothing) {
  connect_pair();
  Memory from(a_nic, 8), to(b_nic, 8);
  ASSERT_EQ(b->recv(1, {to.all()}), PostResult::ok);
  PostResult result;
  a->qp().begin_posting();
  SendWqe* wqe = a->qp().append({.wr_id = 1, .flags = send_flag::signaled}, result);
  ASSERT_NE(wqe, nullptr);
  const Sge sge = from.all();
  ASSERT_EQ(a->qp().set_sges(*wqe, {&sge, 1}), PostResult::ok);
  a->qp().abort_posting();
  EXPECT_FALSE(a->poll_send());
  EXPECT_FALSE(b->poll_recv());
  ASSERT_EQ(a->send(2, from.all()), PostResult::ok);
  EXPECT_TRUE(completed(a->poll_send(), 2));
}

}  // namespace
}  // namespace weir::rnic::test
