// Posting through the C ABI: chains, bad_wr, limits, the extended builders, and the data of every operation.
#include <arpa/inet.h>

#include <cerrno>

#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

class Posting : public ConnectedTest {
 protected:
  Buffer from{pd.get(), 8192}, to{pd.get(), 8192};
};

TEST_F(Posting, every_operation_moves_its_bytes) {
  from.fill(1);
  ibv_sge sge = from.all();
  ibv_send_wr wr = send_wr(1, sge, IBV_WR_RDMA_WRITE);
  wr.wr.rdma = {to.addr(), to.rkey()};
  ASSERT_EQ(post(a.get(), wr), 0);
  auto wc = wait_for(a_cq.get());
  ASSERT_TRUE(completed(wc, 1));
  EXPECT_EQ(wc->opcode, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(wc->qp_num, a->qp_num);
  EXPECT_EQ(to.bytes(), from.bytes());

  to.fill(2);
  wr = send_wr(2, sge, IBV_WR_RDMA_READ);
  wr.wr.rdma = {to.addr(), to.rkey()};
  ASSERT_EQ(post(a.get(), wr), 0);
  wc = wait_for(a_cq.get());
  ASSERT_TRUE(completed(wc, 2));
  EXPECT_EQ(wc->opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(wc->byte_len, 8192u);
  EXPECT_EQ(to.bytes(), from.bytes());

  from.fill(3);
  ASSERT_EQ(post_recv(b.get(), 3, to.all()), 0);
  wr = send_wr(4, sge, IBV_WR_SEND_WITH_IMM);
  wr.imm_data = htonl(0x1234);
  ASSERT_EQ(post(a.get(), wr), 0);
  ASSERT_TRUE(completed(wait_for(a_cq.get()), 4));
  wc = wait_for(b_cq.get());
  ASSERT_TRUE(completed(wc, 3));
  EXPECT_EQ(wc->opcode, IBV_WC_RECV);
  EXPECT_EQ(wc->wc_flags, unsigned{IBV_WC_WITH_IMM});
  EXPECT_EQ(ntohl(wc->imm_data), 0x1234u);
  EXPECT_EQ(wc->byte_len, 8192u);
  EXPECT_EQ(to.bytes(), from.bytes());

  from.fill(4);
  ASSERT_EQ(post_recv(b.get(), 5), 0);
  wr = send_wr(6, sge, IBV_WR_RDMA_WRITE_WITH_IMM);
  wr.wr.rdma = {to.addr(), to.rkey()};
  wr.imm_data = htonl(7);
  ASSERT_EQ(post(a.get(), wr), 0);
  ASSERT_TRUE(completed(wait_for(a_cq.get()), 6));
  wc = wait_for(b_cq.get());
  ASSERT_TRUE(completed(wc, 5));
  EXPECT_EQ(wc->opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(to.bytes(), from.bytes());
}

TEST_F(Posting, a_region_with_an_iova_is_addressed_by_it) {
  std::vector<std::uint8_t> memory(256);
  Mr mr(ibv_reg_mr_iova(pd.get(), memory.data(), memory.size(), 0x10, all_access));
  ASSERT_TRUE(mr);
  from.fill(9);
  ibv_sge sge = from.sge(0, 100);
  ibv_send_wr wr = send_wr(1, sge, IBV_WR_RDMA_WRITE);
  wr.wr.rdma = {0x10 + 50, mr->rkey};
  ASSERT_EQ(post(a.get(), wr), 0);
  ASSERT_TRUE(completed(wait_for(a_cq.get()), 1));
  EXPECT_EQ(std::memcmp(memory.data() + 50, from.data(), 100), 0);
  wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(memory.data());
  wr.wr_id = 2;
  ASSERT_EQ(post(a.get(), wr), 0);
  EXPECT_TRUE(completed(wait_for(a_cq.get()), 2, IBV_WC_REM_ACCESS_ERR))
      << "its virtual address means nothing";
}

TEST_F(Posting, a_reregistered_region_has_its_new_rights_and_range) {
  std::vector<std::uint8_t> memory(256), moved(256);
  Mr mr(register_memory(pd.get(), memory.data(), 256, IBV_ACCESS_LOCAL_WRITE));
  ASSERT_EQ(ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_TRANSLATION, nullptr,
                         moved.data(), 128, all_access),
            0);
  from.fill(2);
  ibv_sge sge = from.sge(0, 128);
  ibv_send_wr wr = send_wr(1, sge, IBV_WR_RDMA_WRITE);
  wr.wr.rdma = {reinterpret_cast<std::uint64_t>(moved.data()), mr->rkey};
  ASSERT_EQ(post(a.get(), wr), 0);
  ASSERT_TRUE(completed(wait_for(a_cq.get()), 1));
  EXPECT_EQ(std::memcmp(moved.data(), from.data(), 128), 0);
  sge.length = 129;
  ASSERT_EQ(post(a.get(), wr), 0);
  EXPECT_TRUE(completed(wait_for(a_cq.get()), 1, IBV_WC_REM_ACCESS_ERR));
}

// Both ends go through reset one after the other, as after an error: who came up first had met the old
// incarnation.
TEST_F(Posting, a_connection_comes_up_again_after_both_ends_were_reset) {
  ibv_qp_attr to_reset{};
  to_reset.qp_state = IBV_QPS_RESET;
  for (const auto& [qp, peer] : {std::pair{b.get(), a.get()}, std::pair{a.get(), b.get()}}) {
    ASSERT_EQ(modify(qp, {to_reset, IBV_QP_STATE}), 0);
    ASSERT_EQ(bring_up(qp, peer->qp_num), 0);
  }
  Buffer memory(pd.get(), 16);
  ibv_sge sge = memory.all();
  ASSERT_EQ(post_recv(a.get(), 1, memory.all()), 0);
  ASSERT_EQ(post(b.get(), send_wr(2, sge)), 0);
  EXPECT_TRUE(completed(wait_for(a_cq.get()), 1));
  EXPECT_TRUE(completed(wait_for(b_cq.get()), 2));
}

TEST_F(Posting, the_bad_request_of_a_chain_is_named_and_those_before_it_are_posted) {
  std::vector<ibv_sge> many(5, from.sge(0, 1));
  ibv_sge one = from.sge(0, 4);
  ibv_send_wr chain[3] = {send_wr(1, one), send_wr(2, one), send_wr(3, one)};
  chain[0].next = &chain[1];
  chain[1].next = &chain[2];
  chain[1].sg_list = many.data();
  chain[1].num_sge = 5;  // max_send_sge is 4
  ASSERT_EQ(post_recv(b.get(), 9, to.all()), 0);
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(a.get(), chain, &bad), EINVAL);
  EXPECT_EQ(bad, &chain[1]);
  EXPECT_TRUE(completed(wait_for(a_cq.get()), 1));
  EXPECT_TRUE(completed(wait_for(b_cq.get()), 9));
  EXPECT_FALSE(poll_once(a_cq.get()));

  ibv_recv_wr receives[2]{};
  receives[0].wr_id = 5;
  receives[0].next = &receives[1];
  receives[1].num_sge = -1;
  ibv_recv_wr* bad_recv = nullptr;
  EXPECT_EQ(ibv_post_recv(b.get(), receives, &bad_recv), EINVAL);
  EXPECT_EQ(bad_recv, &receives[1]);
}

TEST_F(Posting, a_full_queue_says_enomem) {
  ibv_sge sge = from.sge(0, 4);
  std::uint32_t posted = 0;
  ibv_qp_attr attr;
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(a.get(), &attr, IBV_QP_CAP, &init), 0);
  while (posted <= init.cap.max_send_wr && post(a.get(), send_wr(posted, sge)) == 0) ++posted;
  EXPECT_EQ(posted, init.cap.max_send_wr);
  EXPECT_EQ(post(a.get(), send_wr(1, sge)), ENOMEM);
  posted = 0;
  while (posted <= init.cap.max_recv_wr && post_recv(a.get(), posted, to.all()) == 0) ++posted;
  EXPECT_EQ(posted, init.cap.max_recv_wr);
  EXPECT_EQ(post_recv(a.get(), 1, to.all()), ENOMEM);
}

TEST_F(Posting, what_the_device_cannot_do_is_refused) {
  ibv_sge sge = from.sge(0, 8);
  for (const ibv_wr_opcode opcode : {IBV_WR_TSO, IBV_WR_DRIVER1})
    EXPECT_EQ(post(a.get(), send_wr(1, sge, opcode)), EINVAL) << opcode;
  EXPECT_FALSE(poll_once(a_cq.get()));
}

TEST_F(Posting, inline_data_may_come_from_unregistered_memory) {
  std::uint8_t payload[64];
  std::memset(payload, 0x77, sizeof payload);
  ibv_sge sge{reinterpret_cast<std::uint64_t>(payload), sizeof payload, 0};
  ibv_send_wr wr = send_wr(1, sge, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
  wr.wr.rdma = {to.addr(), to.rkey()};
  ASSERT_EQ(post(a.get(), wr), 0);
  ASSERT_TRUE(completed(wait_for(a_cq.get()), 1));
  EXPECT_EQ(std::memcmp(to.data(), payload, sizeof payload), 0);
}

TEST_F(Posting, what_comes_back_cannot_be_inline) {
  for (const ibv_wr_opcode opcode :
       {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP}) {
    ibv_sge sge = from.sge(0, 8);
    ibv_send_wr wr = send_wr(1, sge, opcode, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
    wr.wr.atomic = {to.addr(), 0, 0, to.rkey()};
    EXPECT_EQ(post(a.get(), wr), EINVAL) << opcode;
  }
  EXPECT_FALSE(poll_once(a_cq.get()));
}

TEST_F(Posting, more_inline_data_than_the_queue_pair_has_is_refused) {
  ibv_qp_attr attr;
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(a.get(), &attr, IBV_QP_CAP, &init), 0);
  ibv_sge sge = from.sge(0, init.cap.max_inline_data + 1);
  EXPECT_EQ(post(a.get(), send_wr(1, sge, IBV_WR_SEND, IBV_SEND_INLINE)), EINVAL);
}

// ---- builders

class Builders : public VerbsTest {
 protected:
  Builders() : cq(make_cq()), peer_cq(make_cq()) {
    ibv_qp_init_attr_ex init{};
    init.send_cq = init.recv_cq = cq.get();
    init.cap = {16, 16, 2, 2, 64};
    init.qp_type = IBV_QPT_RC;
    init.pd = pd.get();
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                          IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ;
    qp.reset(ibv_create_qp_ex(context.get(), &init));
    peer = make_qp(peer_cq.get());
    connect(qp.get(), peer.get());
    ex = ibv_qp_to_qp_ex(qp.get());
  }
  void start(std::uint64_t id, unsigned flags = IBV_SEND_SIGNALED) {
    ex->wr_id = id;
    ex->wr_flags = flags;
  }

  Buffer from{pd.get(), 4096}, to{pd.get(), 4096};
  Cq cq, peer_cq;
  Qp qp, peer;
  ibv_qp_ex* ex = nullptr;
};

TEST_F(Builders, a_batch_is_executed_in_order) {
  from.fill(5);
  for (std::uint64_t id = 10; id < 13; ++id) ASSERT_EQ(post_recv(peer.get(), id, to.all()), 0);
  ibv_wr_start(ex);
  start(1);
  ibv_wr_rdma_write(ex, to.rkey(), to.addr());
  ibv_wr_set_sge(ex, from.lkey(), from.addr(), 100);
  start(2, 0);
  ibv_wr_send(ex);
  const ibv_sge list[2] = {from.sge(0, 10), from.sge(10, 10)};
  ibv_wr_set_sge_list(ex, 2, list);
  start(3);
  ibv_wr_send_imm(ex, htonl(33));
  ibv_wr_set_inline_data(ex, from.data(), 64);
  start(4);
  ibv_wr_rdma_write_imm(ex, to.rkey(), to.addr() + 1000, htonl(44));
  const ibv_data_buf buffers[2] = {{from.data(), 5}, {from.data() + 5, 5}};
  ibv_wr_set_inline_data_list(ex, 2, buffers);
  start(5);
  ibv_wr_rdma_read(ex, to.rkey(), to.addr() + 1000);
  ibv_wr_set_sge(ex, from.lkey(), from.addr() + 2000, 10);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  for (const std::uint64_t id : {1, 3, 4, 5}) ASSERT_TRUE(completed(wait_for(cq.get()), id));
  for (const std::uint64_t id : {10, 11, 12}) {
    const auto wc = wait_for(peer_cq.get());
    ASSERT_TRUE(completed(wc, id));
    if (id > 10) {
      EXPECT_EQ(ntohl(wc->imm_data), id == 11 ? 33u : 44u);
    }
  }
  EXPECT_EQ(std::memcmp(to.data(), from.data(), 100), 0);
  EXPECT_EQ(std::memcmp(from.data() + 2000, from.data(), 10), 0);
}

TEST_F(Builders, nothing_happens_before_complete) {
  from.fill(1);
  ibv_wr_start(ex);
  start(1);
  ibv_wr_rdma_write(ex, to.rkey(), to.addr());
  ibv_wr_set_sge(ex, from.lkey(), from.addr(), 8);
  EXPECT_EQ(to.data()[0], 0);
  EXPECT_FALSE(poll_once(cq.get()));
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  EXPECT_TRUE(completed(wait_for(cq.get()), 1));
}

TEST_F(Builders, an_aborted_batch_leaves_nothing_and_the_queue_pair_usable) {
  for (int round = 0; round < 40; ++round) {  // more often than the queue has entries
    ibv_wr_start(ex);
    start(1);
    ibv_wr_rdma_write(ex, to.rkey(), to.addr());
    ibv_wr_set_sge(ex, from.lkey(), from.addr(), 8);
    ibv_wr_abort(ex);
  }
  EXPECT_FALSE(poll_once(cq.get()));
  ibv_wr_start(ex);
  start(2);
  ibv_wr_rdma_write(ex, to.rkey(), to.addr());
  ibv_wr_set_sge(ex, from.lkey(), from.addr(), 8);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  EXPECT_TRUE(completed(wait_for(cq.get()), 2));
  EXPECT_FALSE(poll_once(cq.get()));
}

// ibv_wr_post(3): an error is reported by ibv_wr_complete, which then posts nothing of the batch.
TEST_F(Builders, an_error_sticks_until_complete_and_the_whole_batch_is_dropped) {
  ibv_wr_start(ex);
  start(1);
  ibv_wr_rdma_write(ex, to.rkey(), to.addr());
  ibv_wr_set_sge(ex, from.lkey(), from.addr(), 8);
  start(2);
  ibv_wr_rdma_write(ex, to.rkey(), to.addr());
  ibv_wr_set_inline_data(ex, from.data(), 4096);  // more than the queue pair has
  start(3);
  ibv_wr_rdma_write(ex, to.rkey(), to.addr());
  ibv_wr_set_sge(ex, from.lkey(), from.addr(), 8);
  EXPECT_NE(ibv_wr_complete(ex), 0);
  EXPECT_FALSE(poll_once(cq.get()));
  ibv_wr_start(ex);
  start(4);
  ibv_wr_rdma_write(ex, to.rkey(), to.addr());
  ibv_wr_set_sge(ex, from.lkey(), from.addr(), 8);
  EXPECT_EQ(ibv_wr_complete(ex), 0) << "the next batch begins without the error";
  EXPECT_TRUE(completed(wait_for(cq.get()), 4));
}

TEST_F(Builders, more_requests_than_the_queue_holds_are_an_error_at_complete) {
  ibv_wr_start(ex);
  for (std::uint64_t i = 0; i < 100; ++i) {
    start(i);
    ibv_wr_rdma_write(ex, to.rkey(), to.addr());
    ibv_wr_set_sge(ex, from.lkey(), from.addr(), 8);
  }
  EXPECT_EQ(ibv_wr_complete(ex), ENOMEM);
  EXPECT_FALSE(poll_once(cq.get()));
}

TEST_F(Builders, an_empty_batch_is_no_error) {
  ibv_wr_start(ex);
  EXPECT_EQ(ibv_wr_complete(ex), 0);
}

// ---- datagrams

class Datagrams : public VerbsTest {
 protected:
  Datagrams()
      : cq(make_cq()),
        peer_cq(make_cq()),
        a(make_qp(cq.get(), {.type = IBV_QPT_UD})),
        b(make_qp(peer_cq.get(), {.type = IBV_QPT_UD})) {
    EXPECT_EQ(bring_up(a.get(), 0), 0);
    EXPECT_EQ(bring_up(b.get(), 0), 0);
  }
  Ah address(const ibv_gid& gid) {
    ibv_ah_attr attr{};
    attr.port_num = 1;
    attr.is_global = 1;
    attr.grh.dgid = gid;
    attr.grh.hop_limit = 9;
    return Ah(ibv_create_ah(pd.get(), &attr));
  }
  int send(ibv_qp* qp, ibv_ah* ah, std::uint32_t qpn, ibv_sge sge) {
    ibv_send_wr wr = send_wr(1, sge);
    wr.wr.ud = {ah, qpn, 0x1111};
    return post(qp, wr);
  }

  Buffer from{pd.get(), 4096}, to{pd.get(), 4096 + 40};
  Cq cq, peer_cq;
  Qp a, b;
};

TEST_F(Datagrams, arrive_with_a_grh_from_which_the_receiver_can_reply) {
  from.fill(1);
  Ah ah = address(first_gid(context.get()));
  ASSERT_EQ(post_recv(b.get(), 5, to.all()), 0);
  ASSERT_EQ(send(a.get(), ah.get(), b->qp_num, from.sge(0, 100)), 0);
  ASSERT_TRUE(completed(wait_for(cq.get()), 1));
  auto wc = wait_for(peer_cq.get());
  ASSERT_TRUE(completed(wc, 5));
  EXPECT_EQ(wc->byte_len, 140u);
  EXPECT_TRUE(wc->wc_flags & IBV_WC_GRH);
  const bool ipv6 = to.data()[0] >> 4 == 6;  // an IPv4 header stands in the last 20 bytes
  EXPECT_EQ(wc->sl, ipv6 ? 9 : 10) << "over UDP, and which header: Annex A17.4.5.1";
  EXPECT_EQ(wc->src_qp, a->qp_num);
  EXPECT_EQ(std::memcmp(to.data() + 40, from.data(), 100), 0);

  Ah back(ibv_create_ah_from_wc(pd.get(), &*wc, reinterpret_cast<ibv_grh*>(to.data()), 1));
  ASSERT_TRUE(back);
  ASSERT_EQ(post_recv(a.get(), 6, to.all()), 0);
  ASSERT_EQ(send(b.get(), back.get(), wc->src_qp, from.sge(0, 10)), 0);
  EXPECT_TRUE(completed(wait_for(cq.get()), 6));
}

TEST_F(Datagrams, to_an_address_that_is_not_of_this_host_are_lost) {
  ibv_gid elsewhere = first_gid(context.get());
  const std::uint8_t test_net[4] = {192, 0, 2, 77};  // RFC 5737: nobody's
  std::memset(elsewhere.raw, 0, 10);
  elsewhere.raw[10] = elsewhere.raw[11] = 0xff;
  std::memcpy(elsewhere.raw + 12, test_net, 4);
  Ah ah = address(elsewhere);
  ASSERT_EQ(post_recv(b.get(), 5, to.all()), 0);
  ASSERT_EQ(send(a.get(), ah.get(), b->qp_num, from.sge(0, 100)), 0);
  EXPECT_TRUE(completed(wait_for(cq.get()), 1));
  EXPECT_FALSE(poll_once(peer_cq.get()));
}

TEST_F(Datagrams, an_unsent_datagram_needs_an_address_handle) {
  EXPECT_EQ(send(a.get(), nullptr, b->qp_num, from.sge(0, 10)), EINVAL);
}

}  // namespace
}  // namespace weir::verbs_test
