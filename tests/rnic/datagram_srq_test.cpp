// Datagrams into a shared receive queue.
#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

class DatagramSrq : public TwoNics {
 protected:
  DatagramSrq() : srq(b_nic.adapter().create_srq(pd, 8, 2)) {
    first = std::make_unique<Endpoint>(b_nic, EndpointOptions{.type = QpType::ud, .srq = srq});
    second = std::make_unique<Endpoint>(b_nic, EndpointOptions{.type = QpType::ud, .srq = srq});
    sender = std::make_unique<Endpoint>(a_nic, EndpointOptions{.type = QpType::ud});
    for (Endpoint* end : {first.get(), second.get(), sender.get()}) end->to_rts(Qpn());
  }
  ~DatagramSrq() override {
    first.reset();
    second.reset();
    b_nic.adapter().destroy(srq);
  }
  void post(std::uint64_t id) {
    const Sge sge = into.sge(id * 256, 256);
    ASSERT_EQ(srq->post(id, {&sge, 1}), SharedReceiveQueue::Posted::ok);
  }
  void send(Endpoint& to, std::uint32_t imm) {
    ASSERT_EQ(sender->post({.wr_id = 1,
                            .opcode = SendOpcode::send_with_imm,
                            .flags = send_flag::signaled,
                            .imm_be = imm,
                            .datagram = {to.qpn(), 0x1234, nullptr}},
                           {from.sge(0, 100)}),
              PostResult::ok);
    ASSERT_TRUE(completed(sender->poll_send(), 1));
  }

  SharedReceiveQueue* srq;
  Memory from{a_nic, 128}, into{b_nic, 8 * 256};
  std::unique_ptr<Endpoint> first, second, sender;
};

TEST_F(DatagramSrq, take_its_receives_in_order_whoever_is_meant) {
  from.fill(1);
  for (std::uint64_t id = 0; id < 4; ++id) post(id);
  send(*first, 10);
  send(*second, 11);
  send(*first, 12);
  auto wc = first->poll_recv();
  ASSERT_TRUE(completed(wc, 0));
  EXPECT_EQ(wc->imm_be, 10u);
  EXPECT_EQ(wc->byte_len, 140u);
  EXPECT_EQ(wc->qpn, first->qpn().value());
  EXPECT_EQ(wc->src_qpn, sender->qpn().value());
  EXPECT_EQ(into.part(40, 100), from.part(0, 100));
  wc = second->poll_recv();
  ASSERT_TRUE(completed(wc, 1));
  EXPECT_EQ(wc->imm_be, 11u);
  ASSERT_TRUE(completed(first->poll_recv(), 2));
  EXPECT_FALSE(first->poll_recv());
}

TEST_F(DatagramSrq, are_dropped_while_it_is_empty_and_come_again_when_it_is_not) {
  for (std::uint32_t i = 0; i < 40; ++i) send(*first, i);  // many times the ring
  EXPECT_FALSE(first->poll_recv());
  post(3);
  send(*first, 99);
  const auto wc = first->poll_recv();
  ASSERT_TRUE(completed(wc, 3));
  EXPECT_EQ(wc->imm_be, 99u);
}

TEST_F(DatagramSrq, go_round_the_ring_many_times) {
  for (std::uint32_t round = 0; round < 50; ++round) {
    for (std::uint64_t id = 0; id < 8; ++id) post(id);
    for (std::uint32_t i = 0; i < 8; ++i) send(i % 2 == 0 ? *first : *second, round * 8 + i);
    for (std::uint32_t i = 0; i < 8; ++i) {
      const auto wc = (i % 2 == 0 ? *first : *second).poll_recv();
      ASSERT_TRUE(completed(wc, i));
      ASSERT_EQ(wc->imm_be, round * 8 + i);
    }
  }
}

TEST_F(DatagramSrq, that_do_not_fit_complete_with_a_length_error) {
  const Sge small = into.sge(0, 64);
  ASSERT_EQ(srq->post(4, {&small, 1}), SharedReceiveQueue::Posted::ok);
  send(*first, 1);
  EXPECT_TRUE(completed(first->poll_recv(), 4, WcStatus::loc_len_err));
}

TEST_F(DatagramSrq, count_against_its_limit) {
  for (std::uint64_t id = 0; id < 4; ++id) post(id);
  srq->context().limit = 3;
  send(*first, 1);
  settle();
  EXPECT_TRUE(b_nic.async_events().empty());
  send(*second, 2);
  settle();
  const auto events = b_nic.async_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].event, AsyncEvent::srq_limit_reached);
}

TEST_F(DatagramSrq, that_were_never_polled_give_their_receives_back_when_the_queue_pair_goes) {
  for (std::uint64_t id = 0; id < 8; ++id) post(id);
  for (std::uint32_t i = 0; i < 8; ++i) send(*first, i);
  first->destroy_qp();
  for (std::uint64_t id = 0; id < 8; ++id) post(id);
  send(*second, 5);
  EXPECT_TRUE(completed(second->poll_recv(), 0));
}

// What the kill leaves: a slot claimed and a receive claimed, neither completed.
TEST_F(DatagramSrq, of_a_killed_sender_give_their_receives_back) {
  for (std::uint64_t id = 0; id < 8; ++id) post(id);
  send(*first, 1);  // stands complete in its slot
  ASSERT_NE(a_nic.peer(b_nic.slot(), HostPort::Wait::no), nullptr);
  ASSERT_NE(b_nic.peer(a_nic.slot(), HostPort::Wait::no), nullptr);
  RemoteSrq remote;
  const PeerPtr b_peer = a_nic.peer(b_nic.slot(), HostPort::Wait::no);
  ASSERT_TRUE(remote.connect(*b_peer, srq->index()));
  TakenReceive taken;
  ASSERT_TRUE(remote.claim(sender->qpn(), taken));
  host.kill(a_nic);
  settle();
  ASSERT_TRUE(completed(first->poll_recv(), 0)) << "what was complete stays";
  Endpoint other(b_nic, {.type = QpType::ud});
  other.to_rts(Qpn());
  Memory theirs(b_nic, 8);
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(other.post({.wr_id = 1, .datagram = {second->qpn(), 0x1234, nullptr}}, {theirs.all()}),
              PostResult::ok);
    if (const auto wc = second->poll_recv()) ids.push_back(wc->wr_id);
  }
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{2, 3, 4, 5, 6, 7, 1}));
}

}  // namespace
}  // namespace weir::rnic::test
