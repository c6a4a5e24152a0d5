// UD: delivery with a GRH, and everything that silently drops a datagram.
#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

constexpr std::uint32_t qkey = 0x1234;

class Datagrams : public TwoNics {
 protected:
  Datagrams()
      : sender(a_nic, {.type = QpType::ud, .qkey = qkey}),
        receiver(b_nic, {.type = QpType::ud, .qkey = qkey}) {
    sender.to_rts(Qpn());
    receiver.to_rts(Qpn());
    for (std::size_t i = 0; i < grh.size(); ++i) grh[i] = static_cast<std::byte>(i + 1);
    from.fill(7);
  }
  PostResult send(std::size_t bytes, Qpn destination, std::uint32_t key = qkey,
                  SendOpcode opcode = SendOpcode::send) {
    return sender.post({.wr_id = 1,
                        .opcode = opcode,
                        .flags = send_flag::signaled,
                        .imm_be = 0x55,
                        .datagram = {destination, key, &path}},
                       {from.sge(0, bytes)});
  }
  PostResult send(std::size_t bytes) { return send(bytes, receiver.qpn()); }

  Endpoint sender, receiver;
  Memory from{a_nic, 8192}, to{b_nic, 8192};
  DatagramPath path;
  std::array<std::byte, grh_bytes>& grh = path.grh;
};

// Posting does not wait for it either; what is behind waits too, and all complete in order.
TEST_F(Datagrams, wait_until_their_destination_is_connected) {
  bool connected = false;
  a_nic.on_reach = [&](Slot slot) { return connected || slot == a_nic.slot(); };
  Endpoint neighbour(a_nic, {.type = QpType::ud, .qkey = qkey});
  neighbour.to_rts(Qpn());
  for (const std::uint64_t id : {5, 6}) ASSERT_EQ(receiver.recv(id, {to.all()}), PostResult::ok);
  ASSERT_EQ(neighbour.recv(7, {from.all()}), PostResult::ok);
  ASSERT_EQ(send(64), PostResult::ok);
  ASSERT_EQ(send(64, neighbour.qpn()), PostResult::ok);
  ASSERT_EQ(send(64), PostResult::ok);
  EXPECT_FALSE(sender.poll_send());
  EXPECT_FALSE(receiver.poll_recv());
  connected = true;
  a_nic.adapter().service();
  for (const std::uint64_t id : {5, 6}) EXPECT_TRUE(completed(receiver.poll_recv(), id));
  EXPECT_TRUE(completed(neighbour.poll_recv(), 7));
  EXPECT_EQ(Endpoint::drain(sender.send_cq()).size(), 3u);
}

TEST_F(Datagrams, that_wait_for_their_destination_outlive_their_address_handles) {
  bool connected = false;
  a_nic.on_reach = [&](Slot) { return connected; };
  const auto sent_with = grh;
  for (const std::uint64_t id : {5, 6}) {
    ASSERT_EQ(receiver.recv(id, {to.sge((id - 5) * 4096, 4096)}), PostResult::ok);
    ASSERT_EQ(send(64), PostResult::ok);
  }
  grh.fill(std::byte{0xee});
  connected = true;
  a_nic.adapter().service();
  for (const std::uint64_t id : {5, 6}) {
    ASSERT_TRUE(completed(receiver.poll_recv(), id));
    EXPECT_EQ(std::memcmp(to.data() + (id - 5) * 4096, sent_with.data(), grh_bytes), 0) << id;
  }
}

TEST_F(Datagrams, are_sent_at_the_second_look_if_the_connection_came_meanwhile) {
  int looks = 0;
  a_nic.on_reach = [&](Slot) { return ++looks > 1; };  // decided before anybody knew that we wait
  ASSERT_EQ(receiver.recv(5, {to.all()}), PostResult::ok);
  ASSERT_EQ(send(64), PostResult::ok);
  EXPECT_TRUE(completed(receiver.poll_recv(), 5));
  EXPECT_TRUE(completed(sender.poll_send(), 1));
}

TEST_F(Datagrams, that_wait_for_their_destination_are_flushed_with_the_queue_pair) {
  a_nic.on_reach = [](Slot) { return false; };
  ASSERT_EQ(send(64), PostResult::ok);
  sender.modify(QpState::err);
  EXPECT_TRUE(completed(sender.poll_send(), 1, WcStatus::wr_flush_err));
  a_nic.adapter().service();
  EXPECT_FALSE(sender.poll_send());
}

TEST_F(Datagrams, arrive_behind_their_grh) {
  for (const std::size_t size : {0, 1, 36, 37, 1024, 4095, 4096}) {
    SCOPED_TRACE(size);
    to.clear();
    ASSERT_EQ(receiver.recv(5, {to.all()}), PostResult::ok);
    ASSERT_EQ(send(size), PostResult::ok);
    const auto wc = receiver.poll_recv();
    ASSERT_TRUE(completed(wc, 5));
    EXPECT_EQ(wc->byte_len, grh_bytes + size);
    EXPECT_TRUE(wc->has_grh);
    EXPECT_EQ(wc->src_qpn, sender.qpn().value());
    EXPECT_EQ(wc->qpn, receiver.qpn().value());
    EXPECT_EQ(std::memcmp(to.data(), grh.data(), grh_bytes), 0);
    EXPECT_EQ(to.part(grh_bytes, size), from.part(0, size));
    EXPECT_EQ(to.data()[grh_bytes + size], std::byte{0});
    ASSERT_TRUE(completed(sender.poll_send(), 1));
  }
}

TEST_F(Datagrams, scatter_over_several_sges) {
  ASSERT_EQ(receiver.recv(5, {to.sge(0, 40), to.sge(100, 10), to.sge(200, 500)}), PostResult::ok);
  ASSERT_EQ(send(100), PostResult::ok);
  ASSERT_TRUE(completed(receiver.poll_recv(), 5));
  EXPECT_EQ(to.part(100, 10), from.part(0, 10));
  EXPECT_EQ(to.part(200, 90), from.part(10, 90));
}

TEST_F(Datagrams, carry_an_immediate) {
  ASSERT_EQ(receiver.recv(5, {to.all()}), PostResult::ok);
  ASSERT_EQ(send(8, receiver.qpn(), qkey, SendOpcode::send_with_imm), PostResult::ok);
  const auto wc = receiver.poll_recv();
  ASSERT_TRUE(completed(wc, 5));
  EXPECT_TRUE(wc->has_imm);
  EXPECT_EQ(wc->imm_be, 0x55u);
}

TEST_F(Datagrams, without_a_receive_are_lost_and_the_sender_does_not_know) {
  ASSERT_EQ(send(8), PostResult::ok);
  EXPECT_TRUE(completed(sender.poll_send(), 1));
  ASSERT_EQ(receiver.recv(5, {to.all()}), PostResult::ok);
  settle();
  EXPECT_FALSE(receiver.poll_recv());
  ASSERT_EQ(send(8), PostResult::ok);
  EXPECT_TRUE(completed(receiver.poll_recv(), 5));
}

TEST_F(Datagrams, with_a_wrong_qkey_are_dropped) {
  ASSERT_EQ(receiver.recv(5, {to.all()}), PostResult::ok);
  ASSERT_EQ(send(8, receiver.qpn(), qkey + 1), PostResult::ok);
  EXPECT_TRUE(completed(sender.poll_send(), 1));
  EXPECT_FALSE(receiver.poll_recv());
}

// IBA 10.2.5: a Q_Key with its highest bit set stands for the sending queue pair's own.
TEST_F(Datagrams, a_controlled_qkey_means_the_senders_own) {
  ASSERT_EQ(receiver.recv(5, {to.all()}), PostResult::ok);
  ASSERT_EQ(send(8, receiver.qpn(), 0x80000000), PostResult::ok);
  EXPECT_TRUE(completed(receiver.poll_recv(), 5));
}

TEST_F(Datagrams, to_nobody_or_to_a_connected_queue_pair_are_lost) {
  connect_pair();
  ASSERT_EQ(b->recv(1, {to.all()}), PostResult::ok);
  for (const Qpn nobody : {Qpn(1000, 3), Qpn(b_nic.slot(), 9000), Qpn(), b->qpn()}) {
    ASSERT_EQ(send(8, nobody), PostResult::ok);
    EXPECT_TRUE(completed(sender.poll_send(), 1));
  }
  EXPECT_FALSE(b->poll_recv());
}

TEST_F(Datagrams, to_a_queue_pair_that_is_not_ready_are_lost) {
  Endpoint other(b_nic, {.type = QpType::ud, .qkey = qkey});
  other.modify(QpState::init);
  ASSERT_EQ(other.recv(5, {to.all()}), PostResult::ok);
  ASSERT_EQ(send(8, other.qpn()), PostResult::ok);
  EXPECT_FALSE(other.poll_recv());
  other.modify(QpState::rtr);
  EXPECT_FALSE(other.poll_recv());
  ASSERT_EQ(send(8, other.qpn()), PostResult::ok);
  EXPECT_TRUE(completed(other.poll_recv(), 5));
}

TEST_F(Datagrams, longer_than_the_path_mtu_are_the_senders_length_error) {
  ASSERT_EQ(receiver.recv(5, {to.all()}), PostResult::ok);
  ASSERT_EQ(send(4097), PostResult::ok);
  EXPECT_TRUE(completed(sender.poll_send(), 1, WcStatus::loc_len_err));
  EXPECT_FALSE(receiver.poll_recv());
}

TEST_F(Datagrams, longer_than_the_receive_write_nothing_behind_it) {
  ASSERT_EQ(receiver.recv(5, {to.sge(0, 100)}), PostResult::ok);
  ASSERT_EQ(send(61), PostResult::ok);
  EXPECT_TRUE(completed(receiver.poll_recv(), 5, WcStatus::loc_len_err));
  EXPECT_EQ(to.data()[100], std::byte{0});
}

TEST_F(Datagrams, from_a_bad_lkey_are_the_senders_protection_error) {
  ASSERT_EQ(sender.post({.wr_id = 1, .datagram = {receiver.qpn(), qkey, &path}}, {{from.addr(), 8, 1}}),
            PostResult::ok);
  EXPECT_TRUE(completed(sender.poll_send(), 1, WcStatus::loc_prot_err));
}

TEST_F(Datagrams, of_many_senders_all_arrive_each_in_its_own_order) {
  constexpr std::size_t count = 16, each = 200;
  std::vector<std::unique_ptr<Endpoint>> senders;
  for (std::size_t i = 0; i < count; ++i) {
    auto& made = senders.emplace_back(
        std::make_unique<Endpoint>(i % 2 == 0 ? a_nic : b_nic, EndpointOptions{.type = QpType::ud}));
    made->to_rts(Qpn());
  }
  Memory local{b_nic, 64};
  std::map<std::uint32_t, std::uint32_t> next;
  std::mt19937 random(5);
  std::map<std::size_t, std::uint32_t> sent;
  std::size_t total = 0;
  while (total < count * each) {
    for (int burst = 0; burst < 64; ++burst) {
      ASSERT_EQ(receiver.recv(5, {to.all()}), PostResult::ok);
      const std::size_t i = random() % count;
      const std::uint32_t number = sent[i]++;
      ASSERT_EQ(senders[i]->post({.wr_id = 1,
                                  .opcode = SendOpcode::send_with_imm,
                                  .flags = send_flag::signaled,
                                  .imm_be = number,
                                  .datagram = {receiver.qpn(), qkey, &path}},
                                 {(i % 2 == 0 ? from : local).sge(0, 8)}),
                PostResult::ok);
      ASSERT_TRUE(senders[i]->poll_send());
      ++total;
    }
    while (auto wc = receiver.poll_recv()) ASSERT_EQ(wc->imm_be, next[wc->src_qpn]++);
  }
  std::size_t received = 0;
  for (const auto& [qpn, n] : next) received += n;
  EXPECT_EQ(received, total);
}

TEST_F(Datagrams, moving_to_error_flushes_what_is_posted_behind_what_arrived) {
  ASSERT_EQ(receiver.recv(1, {to.all()}), PostResult::ok);
  ASSERT_EQ(receiver.recv(2, {to.all()}), PostResult::ok);
  ASSERT_EQ(send(8), PostResult::ok);
  receiver.modify(QpState::err);
  EXPECT_TRUE(completed(receiver.poll_recv(), 1));
  EXPECT_TRUE(completed(receiver.poll_recv(), 2, WcStatus::wr_flush_err));
}

TEST_F(Datagrams, a_reset_queue_pair_forgets_and_works_again) {
  for (int lap = 0; lap < 3; ++lap) {
    for (std::uint64_t id = 0; id < 10; ++id) ASSERT_EQ(receiver.recv(id, {to.all()}), PostResult::ok);
    for (int i = 0; i < 5; ++i) ASSERT_EQ(send(8), PostResult::ok);
    EXPECT_TRUE(completed(receiver.poll_recv(), 0));
    receiver.modify(QpState::reset);
    receiver.to_rts(Qpn());
    EXPECT_FALSE(receiver.poll_recv());
    ASSERT_EQ(receiver.recv(77, {to.all()}), PostResult::ok);
    EXPECT_FALSE(receiver.poll_recv());
    ASSERT_EQ(send(8), PostResult::ok);
    EXPECT_TRUE(completed(receiver.poll_recv(), 77));
    Endpoint::drain(sender.send_cq());
  }
}

}  // namespace
}  // namespace weir::rnic::test
