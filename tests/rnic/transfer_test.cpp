// Transfers: SEND, RDMA WRITE, WRITE WITH IMMEDIATE and READ on a connected pair, for every size at which the
// internal path changes, through memory that the peer maps and memory that it does not map.
#include "two_nics.hpp"

namespace weir::rnic::test {
namespace {

const std::vector<std::size_t> sizes = {0,    1,    35,   36,   37,   63,   64,    65,    255,   256,
                                        4095, 4096, 4097, 8191, 8192, 8193, 65535, 65536, 65537, 1u << 20};

struct Tier {
  Reach reach;
  const char* name;
};
class Transfer : public TwoNics, public testing::WithParamInterface<Tier> {
 protected:
  Transfer() { connect_pair(); }
  Reach reach() const { return GetParam().reach; }
};
INSTANTIATE_TEST_SUITE_P(Reach, Transfer,
                         testing::Values(Tier{Reach::copied, "copied"}, Tier{Reach::mapped, "mapped"}),
                         [](const auto& param_info) { return param_info.param.name; });

TEST_P(Transfer, send_delivers_every_size) {
  Memory from(a_nic, 1u << 20, all_access, reach()), to(b_nic, (1u << 20) + 1, all_access, reach());
  for (const std::size_t size : sizes) {
    SCOPED_TRACE(size);
    from.fill(static_cast<std::uint32_t>(size));
    to.clear();
    ASSERT_EQ(b->recv(size, {to.all()}), PostResult::ok);
    ASSERT_EQ(a->send(size + 1, from.sge(0, size)), PostResult::ok);
    const auto received = b->poll_recv();
    ASSERT_TRUE(completed(received, size));
    EXPECT_EQ(received->opcode, WcOpcode::recv);
    EXPECT_EQ(received->byte_len, size);
    EXPECT_EQ(received->qpn, b->qpn().value());
    EXPECT_FALSE(received->has_imm);
    const auto sent = a->poll_send();
    ASSERT_TRUE(completed(sent, size + 1));
    EXPECT_EQ(sent->opcode, WcOpcode::send);
    EXPECT_EQ(sent->qpn, a->qpn().value());
    EXPECT_EQ(to.part(0, size), from.part(0, size));
    EXPECT_EQ(to.data()[size], std::byte{0}) << "wrote behind the message";
  }
}

TEST_P(Transfer, write_delivers_every_size_and_leaves_no_completion_at_the_target) {
  Memory from(a_nic, 1u << 20, all_access, reach()), to(b_nic, (1u << 20) + 1, all_access, reach());
  for (const std::size_t size : sizes) {
    SCOPED_TRACE(size);
    from.fill(static_cast<std::uint32_t>(size));
    to.clear();
    ASSERT_EQ(a->write(size, from.sge(0, size), to.addr(), to.key()), PostResult::ok);
    const auto wc = a->poll_send();
    ASSERT_TRUE(completed(wc, size));
    EXPECT_EQ(wc->opcode, WcOpcode::rdma_write);
    EXPECT_EQ(to.part(0, size), from.part(0, size));
    EXPECT_EQ(to.data()[size], std::byte{0});
    EXPECT_FALSE(b->poll_recv());
  }
}

TEST_P(Transfer, write_with_imm_consumes_a_receive_and_carries_the_immediate) {
  Memory from(a_nic, 1u << 20, all_access, reach()), to(b_nic, (1u << 20) + 1, all_access, reach());
  for (const std::size_t size : sizes) {
    SCOPED_TRACE(size);
    from.fill(static_cast<std::uint32_t>(size));
    to.clear();
    ASSERT_EQ(b->recv(5), PostResult::ok);
    ASSERT_EQ(a->post({.wr_id = 6,
                       .opcode = SendOpcode::rdma_write_with_imm,
                       .flags = send_flag::signaled,
                       .imm_be = 0x01020304,
                       .remote_addr = to.addr(),
                       .rkey = to.key()},
                      {from.sge(0, size)}),
              PostResult::ok);
    const auto received = b->poll_recv();
    ASSERT_TRUE(completed(received, 5));
    EXPECT_EQ(received->opcode, WcOpcode::recv_rdma_with_imm);
    EXPECT_EQ(received->byte_len, size);
    EXPECT_TRUE(received->has_imm);
    EXPECT_EQ(received->imm_be, 0x01020304u);
    const auto sent = a->poll_send();
    ASSERT_TRUE(completed(sent, 6));
    EXPECT_EQ(sent->opcode, WcOpcode::rdma_write);
    EXPECT_EQ(to.part(0, size), from.part(0, size));
    EXPECT_EQ(to.data()[size], std::byte{0});
  }
}

TEST_P(Transfer, write_with_imm_leaves_the_buffer_of_the_receive_alone) {
  Memory from(a_nic, 64, all_access, reach()), to(b_nic, 64, all_access, reach()),
      unused(b_nic, 64, all_access, reach());
  from.fill(1);
  ASSERT_EQ(b->recv(1, {unused.all()}), PostResult::ok);
  ASSERT_EQ(a->post({.wr_id = 2,
                     .opcode = SendOpcode::rdma_write_with_imm,
                     .flags = send_flag::signaled,
                     .remote_addr = to.addr(),
                     .rkey = to.key()},
                    {from.all()}),
            PostResult::ok);
  ASSERT_TRUE(completed(b->poll_recv(), 1));
  EXPECT_EQ(to.part(0, 64), from.part(0, 64));
  EXPECT_EQ(unused.part(0, 64), std::vector<std::byte>(64));
}

TEST_P(Transfer, read_fetches_every_size) {
  Memory into(a_nic, (1u << 20) + 1, all_access, reach()), from(b_nic, 1u << 20, all_access, reach());
  for (const std::size_t size : sizes) {
    SCOPED_TRACE(size);
    from.fill(static_cast<std::uint32_t>(size));
    into.clear();
    ASSERT_EQ(a->read(size, into.sge(0, size), from.addr(), from.key()), PostResult::ok);
    const auto wc = a->poll_send();
    ASSERT_TRUE(completed(wc, size));
    EXPECT_EQ(wc->opcode, WcOpcode::rdma_read);
    EXPECT_EQ(wc->byte_len, size);
    EXPECT_EQ(into.part(0, size), from.part(0, size));
    EXPECT_EQ(into.data()[size], std::byte{0});
  }
}

TEST_P(Transfer, send_with_imm_carries_it_with_and_without_payload) {
  Memory from(a_nic, 64, all_access, reach()), to(b_nic, 64, all_access, reach());
  for (const std::size_t size : {std::size_t{0}, std::size_t{20}, std::size_t{64}}) {
    ASSERT_EQ(b->recv(1, {to.all()}), PostResult::ok);
    ASSERT_EQ(
        a->post({.wr_id = 2, .opcode = SendOpcode::send_with_imm, .imm_be = 0xdeadbeef}, {from.sge(0, size)}),
        PostResult::ok);
    const auto wc = b->poll_recv();
    ASSERT_TRUE(completed(wc, 1));
    EXPECT_TRUE(wc->has_imm);
    EXPECT_EQ(wc->imm_be, 0xdeadbeef);
    EXPECT_EQ(wc->opcode, WcOpcode::recv);
    EXPECT_EQ(wc->byte_len, size);
  }
}

TEST_P(Transfer, gathers_and_scatters_over_several_sges) {
  Memory from(a_nic, 65536, all_access, reach()), to(b_nic, 65536, all_access, reach());
  struct Split {
    std::vector<std::size_t> send, receive;
  };
  const Split splits[] = {{{10, 20, 6}, {1, 35}},
                          {{0, 36, 0}, {0, 0, 36}},
                          {{37}, {36, 1}},
                          {{100, 1, 99}, {64, 64, 64, 64}},
                          {{8192}, {4096, 4096}},
                          {{8192, 1}, {1, 8192}},
                          {{20000, 20000}, {30000, 1, 9999}},
                          {{1, 1, 1, 1}, {4}}};
  for (const Split& split : splits) {
    from.fill(static_cast<std::uint32_t>(split.send[0]));
    to.clear();
    std::vector<Sge> gather, scatter;
    std::size_t bytes = 0, at = 0;
    for (const std::size_t length : split.send) {
      gather.push_back(from.sge(bytes, length));
      bytes += length;
    }
    for (const std::size_t length : split.receive) {
      scatter.push_back(to.sge(at, length));
      at += length;
    }
    ASSERT_EQ(b->recv(1, scatter), PostResult::ok);
    ASSERT_EQ(a->post({.wr_id = 2, .flags = send_flag::signaled}, gather), PostResult::ok);
    const auto wc = b->poll_recv();
    ASSERT_TRUE(completed(wc, 1));
    EXPECT_EQ(wc->byte_len, bytes);
    EXPECT_EQ(to.part(0, bytes), from.part(0, bytes));
    ASSERT_TRUE(completed(a->poll_send(), 2));

    to.clear();
    ASSERT_EQ(a->post({.wr_id = 3,
                       .opcode = SendOpcode::rdma_write,
                       .flags = send_flag::signaled,
                       .remote_addr = to.addr(),
                       .rkey = to.key()},
                      gather),
              PostResult::ok);
    ASSERT_TRUE(completed(a->poll_send(), 3));
    EXPECT_EQ(to.part(0, bytes), from.part(0, bytes));

    to.fill(9);
    from.clear();
    ASSERT_EQ(a->post({.wr_id = 4,
                       .opcode = SendOpcode::rdma_read,
                       .flags = send_flag::signaled,
                       .remote_addr = to.addr(),
                       .rkey = to.key()},
                      gather),
              PostResult::ok);
    ASSERT_TRUE(completed(a->poll_send(), 4));
    EXPECT_EQ(from.part(0, bytes), to.part(0, bytes));
  }
}

TEST_P(Transfer, a_message_may_be_shorter_than_its_receive_and_end_inside_any_sge) {
  Memory from(a_nic, 300, all_access, reach()), to(b_nic, 300, all_access, reach());
  from.fill(3);
  for (const std::size_t size : {std::size_t{1}, std::size_t{99}, std::size_t{100}, std::size_t{101},
                                 std::size_t{200}, std::size_t{299}}) {
    to.clear();
    ASSERT_EQ(b->recv(1, {to.sge(0, 100), to.sge(100, 100), to.sge(200, 100)}), PostResult::ok);
    ASSERT_EQ(a->send(2, from.sge(0, size)), PostResult::ok);
    ASSERT_TRUE(completed(b->poll_recv(), 1));
    EXPECT_EQ(to.part(0, size), from.part(0, size));
    EXPECT_EQ(to.part(size, 300 - size), std::vector<std::byte>(300 - size));
  }
}

// Messages that pass through the landing ring, many times around it, with several waiting to be polled.
TEST_P(Transfer, sends_of_odd_sizes_survive_wrapping_every_ring) {
  constexpr std::size_t slot = 8192;
  constexpr std::uint32_t waiting = 32;
  Memory from(a_nic, slot, all_access, reach()), to(b_nic, slot * waiting, all_access, reach());
  std::mt19937 random(1);
  for (std::uint32_t round = 0; round < 100; ++round) {
    std::vector<std::vector<std::byte>> expected;
    for (std::uint32_t i = 0; i < waiting; ++i) {
      const std::size_t size = random() % (slot + 1);
      from.fill(round * waiting + i);
      expected.push_back(from.part(0, size));
      ASSERT_EQ(b->recv(i, {to.sge(i * slot, slot)}), PostResult::ok);
      ASSERT_EQ(a->send(i, from.sge(0, size)), PostResult::ok);
      ASSERT_TRUE(completed(a->poll_send(), i));
    }
    for (std::uint32_t i = 0; i < waiting; ++i) {
      ASSERT_TRUE(completed(b->poll_recv(), i));
      ASSERT_EQ(to.part(i * slot, expected[i].size()), expected[i]) << "round " << round << " message " << i;
    }
  }
}

TEST_P(Transfer, regions_may_be_named_by_an_iova) {
  Memory from(a_nic, 4096, all_access, reach()), to(b_nic, 4096, all_access, reach());
  from.fill(1);
  const std::uint32_t window = reach() == Reach::mapped ? 1 : 0;
  const std::uint32_t local =
      a_nic.adapter().table().insert({0x40, from.addr(), 4096, all_access, pd, window, 0}).value();
  const std::uint32_t remote =
      b_nic.adapter().table().insert({0x1000000, to.addr(), 4096, all_access, pd, window, 0}).value();
  ASSERT_EQ(a->write(1, {0x40 + 96, 4000, local}, 0x1000000 + 90, remote), PostResult::ok);
  ASSERT_TRUE(completed(a->poll_send(), 1));
  EXPECT_EQ(to.part(90, 4000), from.part(96, 4000));
  ASSERT_EQ(b->recv(2, {{0x1000000 + 1, 4000, remote}}), PostResult::ok);
  ASSERT_EQ(a->send(3, {0x40, 4000, local}), PostResult::ok);
  ASSERT_TRUE(completed(b->poll_recv(), 2));
  EXPECT_EQ(to.part(1, 4000), from.part(0, 4000));
}

TEST_P(Transfer, a_queue_pair_may_be_connected_to_another_of_its_own_process) {
  Endpoint one(a_nic), two(a_nic);
  connect(one, two);
  Memory from(a_nic, 10000, all_access, reach()), to(a_nic, 10000, all_access, reach());
  from.fill(8);
  ASSERT_EQ(two.recv(1, {to.all()}), PostResult::ok);
  ASSERT_EQ(one.send(2, from.all()), PostResult::ok);
  ASSERT_TRUE(completed(two.poll_recv(), 1));
  EXPECT_EQ(to.part(0, 10000), from.part(0, 10000));
}

TEST_P(Transfer, a_queue_pair_may_be_connected_to_itself) {
  Endpoint self(a_nic);
  self.to_rts(self.qpn());
  Memory from(a_nic, 100, all_access, reach()), to(a_nic, 100, all_access, reach());
  from.fill(8);
  ASSERT_EQ(self.recv(1, {to.all()}), PostResult::ok);
  ASSERT_EQ(self.send(2, from.all()), PostResult::ok);
  ASSERT_TRUE(completed(self.poll_recv(), 1));
  ASSERT_TRUE(completed(self.poll_send(), 2));
  EXPECT_EQ(to.part(0, 100), from.part(0, 100));
}

}  // namespace
}  // namespace weir::rnic::test
