// Datagrams to groups: every attached queue pair of every process gets a copy.
#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

struct Address : DatagramPath {
  explicit Address(std::uint8_t last) {
    group[0] = 0xff;
    group[15] = last;
  }
};

class Multicast : public TwoNics {
 protected:
  std::unique_ptr<Endpoint> end(Nic& nic, std::uint32_t qkey = 0x1234) {
    auto made = std::make_unique<Endpoint>(nic, EndpointOptions{.type = QpType::ud, .qkey = qkey});
    made->to_rts(Qpn());
    return made;
  }
  static MulticastGroups::Attached attach(Endpoint& end, const Address& to) {
    return end.nic().adapter().multicast().attach(end.qpn().index(), to.group);
  }
  static bool detach(Endpoint& end, const Address& from) {
    return end.nic().adapter().multicast().detach(end.qpn().index(), from.group);
  }
  void send(Endpoint& by, const Address& to, std::uint32_t imm) {
    Memory from(by.nic(), 64);
    from.fill(imm);
    ASSERT_EQ(by.post({.wr_id = imm,
                       .opcode = SendOpcode::send_with_imm,
                       .flags = send_flag::signaled,
                       .imm_be = imm,
                       .datagram = {multicast_destination, 0x1234, &to}},
                      {from.all()}),
              PostResult::ok);
    ASSERT_TRUE(completed(by.poll_send(), imm));
  }
  static bool got(Endpoint& end, std::uint32_t imm) {
    const auto wc = end.poll_recv();
    return wc && wc->status == WcStatus::success && wc->imm_be == imm && wc->byte_len == grh_bytes + 64;
  }
  // Receives enough for a test.
  void feed(Endpoint& end, Memory& into) {
    for (std::uint64_t id = 0; id < 8; ++id)
      ASSERT_EQ(end.recv(id, {into.sge(id * 128, 128)}), PostResult::ok);
  }

  Memory into_a{a_nic, 1024}, into_b{b_nic, 1024}, into_c{b_nic, 1024};
  Address group{1}, other{2};
};

TEST_F(Multicast, reaches_every_attached_queue_pair_of_every_process) {
  auto sender = end(a_nic), mine = end(a_nic), first = end(b_nic), second = end(b_nic), outside = end(b_nic);
  feed(*mine, into_a);
  feed(*first, into_b);
  feed(*second, into_c);
  Memory unused(b_nic, 1024);
  feed(*outside, unused);
  for (Endpoint* one : {mine.get(), first.get(), second.get()})
    ASSERT_EQ(attach(*one, group), MulticastGroups::Attached::ok);
  ASSERT_EQ(attach(*outside, other), MulticastGroups::Attached::ok);
  send(*sender, group, 7);
  for (Endpoint* one : {mine.get(), first.get(), second.get()}) EXPECT_TRUE(got(*one, 7));
  EXPECT_FALSE(outside->poll_recv());
  send(*sender, other, 8);
  EXPECT_TRUE(got(*outside, 8));
  EXPECT_FALSE(first->poll_recv());
}

TEST_F(Multicast, reaches_its_sender_if_that_is_attached) {
  auto one = end(a_nic);
  feed(*one, into_a);
  send(*one, group, 1);
  EXPECT_FALSE(one->poll_recv());
  attach(*one, group);
  send(*one, group, 2);
  EXPECT_TRUE(got(*one, 2));
}

TEST_F(Multicast, comes_once_however_often_attached_and_ends_with_a_detach) {
  auto sender = end(a_nic), receiver = end(b_nic);
  feed(*receiver, into_b);
  attach(*receiver, group);
  attach(*receiver, group);
  attach(*receiver, other);
  send(*sender, group, 1);
  EXPECT_TRUE(got(*receiver, 1));
  EXPECT_FALSE(receiver->poll_recv());
  EXPECT_TRUE(detach(*receiver, group));
  EXPECT_FALSE(detach(*receiver, group));
  send(*sender, group, 2);
  EXPECT_FALSE(receiver->poll_recv());
  send(*sender, other, 3);
  EXPECT_TRUE(got(*receiver, 3)) << "the other group is as it was";
}

TEST_F(Multicast, is_dropped_where_it_cannot_be_received_and_delivered_elsewhere) {
  auto sender = end(a_nic), hungry = end(b_nic), wrong_key = end(b_nic, 0x9999), ready = end(b_nic);
  Memory unused(b_nic, 1024);
  feed(*wrong_key, unused);
  feed(*ready, into_b);
  for (Endpoint* one : {hungry.get(), wrong_key.get(), ready.get()}) attach(*one, group);
  send(*sender, group, 4);
  EXPECT_TRUE(got(*ready, 4));
  EXPECT_FALSE(wrong_key->poll_recv());
  feed(*hungry, into_c);
  EXPECT_FALSE(hungry->poll_recv());
}

TEST_F(Multicast, ends_with_the_queue_pair_and_with_the_process) {
  auto sender = end(a_nic), receiver = end(b_nic), stays = end(b_nic);
  feed(*stays, into_b);
  attach(*receiver, group);
  attach(*stays, group);
  receiver.reset();
  send(*sender, group, 1);
  EXPECT_TRUE(got(*stays, 1));
  host.kill(b_nic);
  settle();
  send(*sender, group, 2);
  EXPECT_FALSE(stays->poll_recv());
}

TEST_F(Multicast, as_many_attachments_as_the_limit_says_and_not_one_more) {
  auto receiver = end(b_nic), last = end(b_nic);
  for (std::uint32_t i = 0; i < max_multicast_attachments; ++i) {
    Gid gid{};
    gid[0] = 0xff;
    gid[1] = static_cast<std::uint8_t>(i);
    gid[2] = static_cast<std::uint8_t>(i >> 8);
    ASSERT_EQ(b_nic.adapter().multicast().attach(receiver->qpn().index(), gid),
              MulticastGroups::Attached::ok);
  }
  EXPECT_EQ(attach(*last, group), MulticastGroups::Attached::full);
  receiver.reset();
  EXPECT_EQ(attach(*last, group), MulticastGroups::Attached::ok);
}

}  // namespace
}  // namespace weir::rnic::test
