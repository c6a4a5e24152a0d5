// Domains, completion queues, queue pairs and address handles: arguments, limits, queries, teardown
// order.
#include <unistd.h>

#include <cerrno>

#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

class Objects : public VerbsTest {};

// ---- teardown in the wrong order

TEST_F(Objects, a_domain_in_use_is_not_freed) {
  Pd domain(ibv_alloc_pd(context.get()));
  std::vector<char> memory(8);
  Cq cq = make_cq();
  {
    Mr mr(register_memory(domain.get(), memory.data(), 8));
    EXPECT_EQ(ibv_dealloc_pd(domain.get()), EBUSY);
  }
  {
    ibv_qp_init_attr init = init_attr(cq.get());
    Qp qp(ibv_create_qp(domain.get(), &init));
    EXPECT_EQ(ibv_dealloc_pd(domain.get()), EBUSY);
  }
  {
    ibv_srq_init_attr init{nullptr, {8, 1, 0}};
    Srq srq(ibv_create_srq(domain.get(), &init));
    EXPECT_EQ(ibv_dealloc_pd(domain.get()), EBUSY);
  }
  {
    ibv_ah_attr attr{};
    attr.port_num = 1;
    attr.is_global = 1;
    attr.grh.dgid = first_gid(context.get());
    Ah ah(ibv_create_ah(domain.get(), &attr));
    EXPECT_EQ(ibv_dealloc_pd(domain.get()), EBUSY);
  }
}

TEST_F(Objects, a_cq_a_channel_and_an_srq_in_use_are_not_destroyed) {
  Channel channel(ibv_create_comp_channel(context.get()));
  Cq cq = make_cq(8, channel.get());
  EXPECT_EQ(ibv_destroy_comp_channel(channel.get()), EBUSY);
  ibv_srq_init_attr init{nullptr, {8, 1, 0}};
  Srq srq(ibv_create_srq(pd.get(), &init));
  {
    Qp qp = make_qp(cq.get(), {.srq = srq.get()});
    EXPECT_EQ(ibv_destroy_cq(cq.get()), EBUSY);
    EXPECT_EQ(ibv_destroy_srq(srq.get()), EBUSY);
  }
}

// ---- completion queues

TEST_F(Objects, completion_queues_check_their_arguments) {
  ibv_device_attr device;
  ASSERT_EQ(ibv_query_device(context.get(), &device), 0);
  const auto refused = [&](int cqe, int vector) {
    errno = 0;
    ibv_cq* cq = ibv_create_cq(context.get(), cqe, nullptr, nullptr, vector);
    EXPECT_EQ(cq, nullptr) << cqe << " " << vector;
    EXPECT_EQ(errno, EINVAL);
  };
  refused(0, 0);
  refused(-1, 0);
  refused(device.max_cqe + 1, 0);
  refused(8, -1);
  refused(8, context->num_comp_vectors);
  int cookie;
  Cq cq(ibv_create_cq(context.get(), 10, &cookie, nullptr, context->num_comp_vectors - 1));
  ASSERT_TRUE(cq);
  EXPECT_GE(cq->cqe, 10);
  EXPECT_EQ(cq->cq_context, &cookie);
  EXPECT_EQ(ibv_resize_cq(cq.get(), 100), 0);
  EXPECT_GE(cq->cqe, 100);
  EXPECT_NE(ibv_resize_cq(cq.get(), device.max_cqe + 1), 0);
  EXPECT_NE(ibv_resize_cq(cq.get(), 0), 0);
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(cq.get(), 1, &wc), 0);
  EXPECT_EQ(ibv_poll_cq(cq.get(), 0, nullptr), 0);
}

// ---- queue pairs

TEST_F(Objects, a_queue_pair_has_at_least_what_was_asked_for_and_says_so) {
  Cq cq = make_cq();
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
    ibv_qp_init_attr init = init_attr(cq.get(), {.type = type, .cap = {5, 6, 2, 3, 17}});
    Qp qp(ibv_create_qp(pd.get(), &init));
    ASSERT_TRUE(qp);
    for (const ibv_qp_cap& cap : {init.cap}) {
      EXPECT_GE(cap.max_send_wr, 5u);
      EXPECT_GE(cap.max_recv_wr, 6u);
      EXPECT_GE(cap.max_send_sge, 2u);
      EXPECT_GE(cap.max_recv_sge, 3u);
      EXPECT_GE(cap.max_inline_data, 17u);
    }
    EXPECT_EQ(qp->qp_type, type);
    EXPECT_EQ(qp->state, IBV_QPS_RESET);
    EXPECT_GT(qp->qp_num, 1u);
    EXPECT_LT(qp->qp_num, 1u << 24);
    ibv_qp_attr attr;
    ibv_qp_init_attr queried;
    ASSERT_EQ(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_CAP, &queried), 0);
    EXPECT_EQ(attr.qp_state, IBV_QPS_RESET);
    EXPECT_EQ(std::memcmp(&attr.cap, &init.cap, sizeof attr.cap), 0);
    EXPECT_EQ(std::memcmp(&queried.cap, &init.cap, sizeof attr.cap), 0);
    EXPECT_EQ(queried.send_cq, cq.get());
    EXPECT_EQ(queried.qp_type, type);
  }
}

TEST_F(Objects, queue_pairs_check_their_arguments) {
  ibv_device_attr device;
  ASSERT_EQ(ibv_query_device(context.get(), &device), 0);
  Cq cq = make_cq();
  const auto refused = [&](QpOptions options, ibv_cq* with) {
    ibv_qp_init_attr init = init_attr(with, options);
    errno = 0;
    EXPECT_EQ(ibv_create_qp(pd.get(), &init), nullptr);
    return errno;
  };
  const auto wr = static_cast<std::uint32_t>(device.max_qp_wr) + 1;
  const auto sge = static_cast<std::uint32_t>(device.max_sge) + 1;
  EXPECT_EQ(refused({.cap = {wr, 1, 1, 1, 0}}, cq.get()), EINVAL);
  EXPECT_EQ(refused({.cap = {1, wr, 1, 1, 0}}, cq.get()), EINVAL);
  EXPECT_EQ(refused({.cap = {1, 1, sge, 1, 0}}, cq.get()), EINVAL);
  EXPECT_EQ(refused({.cap = {1, 1, 1, sge, 0}}, cq.get()), EINVAL);
  EXPECT_EQ(refused({.cap = {1, 1, 1, 1, 1u << 20}}, cq.get()), EINVAL);
  EXPECT_EQ(refused({}, nullptr), EINVAL);
  EXPECT_EQ(refused({.type = IBV_QPT_DRIVER}, cq.get()), EOPNOTSUPP);
  EXPECT_EQ(refused({.type = IBV_QPT_XRC_RECV}, cq.get()), EINVAL) << "it belongs to an XRC domain";
  EXPECT_NE(refused({.type = static_cast<ibv_qp_type>(0)}, cq.get()), 0);
}

TEST_F(Objects, the_largest_queue_pair_that_the_device_reports_can_be_made) {
  ibv_device_attr device;
  ASSERT_EQ(ibv_query_device(context.get(), &device), 0);
  Cq cq = make_cq();
  const auto wr = static_cast<std::uint32_t>(device.max_qp_wr);
  const auto sge = static_cast<std::uint32_t>(device.max_sge);
  EXPECT_TRUE(make_qp(cq.get(), {.cap = {wr, wr, sge, sge, 0}}));
}

ibv_qp_init_attr_ex extended_attr(ibv_pd* pd, ibv_cq* cq, std::uint32_t mask, std::uint64_t ops) {
  ibv_qp_init_attr_ex init{};
  init.send_cq = init.recv_cq = cq;
  init.cap = {8, 8, 2, 2, 32};
  init.qp_type = IBV_QPT_RC;
  init.pd = pd;
  init.comp_mask = mask;
  init.send_ops_flags = ops;
  return init;
}

// A caller that got a queue pair for features it does not have would go on to call them through null
// pointers.
TEST_F(Objects, extended_creation_refuses_what_it_does_not_know) {
  Cq cq = make_cq();
  constexpr std::uint32_t base = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  ibv_qp_init_attr_ex flags = extended_attr(pd.get(), cq.get(), base | IBV_QP_INIT_ATTR_CREATE_FLAGS, 0);
  EXPECT_TRUE(Qp(ibv_create_qp_ex(context.get(), &flags))) << "no creation flags";
  flags.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
  EXPECT_EQ(ibv_create_qp_ex(context.get(), &flags), nullptr);
  for (std::uint32_t bit = 1; bit != 0; bit <<= 1) {
    if (bit & (base | IBV_QP_INIT_ATTR_CREATE_FLAGS)) continue;
    ibv_qp_init_attr_ex init = extended_attr(pd.get(), cq.get(), base | bit, IBV_QP_EX_WITH_SEND);
    EXPECT_EQ(ibv_create_qp_ex(context.get(), &init), nullptr) << "comp_mask " << bit;
  }
  constexpr std::uint64_t known =
      IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
      IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV |
      IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE;
  for (std::uint64_t bit = 1; bit != 0; bit <<= 1) {
    ibv_qp_init_attr_ex init = extended_attr(pd.get(), cq.get(), base, bit);
    Qp qp(ibv_create_qp_ex(context.get(), &init));
    EXPECT_EQ(qp != nullptr, (bit & known) != 0) << "send_ops " << bit;
  }
  ibv_qp_init_attr_ex no_domain = extended_attr(nullptr, cq.get(), 0, 0);
  EXPECT_EQ(ibv_create_qp_ex(context.get(), &no_domain), nullptr);
}

TEST_F(Objects, only_queue_pairs_made_with_operations_have_them) {
  Cq cq = make_cq();
  Qp plain = make_qp(cq.get());
  EXPECT_EQ(ibv_qp_to_qp_ex(plain.get()), nullptr);
  ibv_qp_init_attr_ex without = extended_attr(pd.get(), cq.get(), IBV_QP_INIT_ATTR_PD, 0);
  Qp extended(ibv_create_qp_ex(context.get(), &without));
  ASSERT_TRUE(extended);
  EXPECT_EQ(ibv_qp_to_qp_ex(extended.get()), nullptr);
  ibv_qp_init_attr_ex with = extended_attr(
      pd.get(), cq.get(), IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, IBV_QP_EX_WITH_SEND);
  Qp building(ibv_create_qp_ex(context.get(), &with));
  ASSERT_TRUE(building);
  EXPECT_NE(ibv_qp_to_qp_ex(building.get()), nullptr);
}

TEST_F(Objects, modify_refuses_values_out_of_range) {
  Cq cq = make_cq();
  Qp qp = make_qp(cq.get());
  const ibv_gid gid = first_gid(context.get());
  const auto refused = [&](Step step, auto spoil) {
    spoil(step.attr);
    EXPECT_EQ(modify(qp.get(), step), EINVAL);
  };
  const Step init = to_init(IBV_QPT_RC);
  refused(init, [](ibv_qp_attr& a) { a.port_num = 0; });
  refused(init, [](ibv_qp_attr& a) { a.port_num = 2; });
  refused(init, [](ibv_qp_attr& a) { a.pkey_index = 1; });
  refused(init, [](ibv_qp_attr& a) { a.qp_access_flags = 1u << 10; });
  ASSERT_EQ(modify(qp.get(), init), 0);
  const Step rtr = to_rtr(IBV_QPT_RC, qp->qp_num, gid);
  refused(rtr, [](ibv_qp_attr& a) { a.path_mtu = static_cast<ibv_mtu>(0); });
  refused(rtr, [](ibv_qp_attr& a) { a.ah_attr.port_num = 2; });
  refused(rtr, [](ibv_qp_attr& a) { a.path_mtu = static_cast<ibv_mtu>(6); });
  refused(rtr, [](ibv_qp_attr& a) { a.min_rnr_timer = 32; });
  refused(rtr, [](ibv_qp_attr& a) { a.ah_attr.grh.sgid_index = 255; });
  ASSERT_EQ(modify(qp.get(), rtr), 0);
  const Step rts = to_rts(IBV_QPT_RC);
  refused(rts, [](ibv_qp_attr& a) { a.timeout = 32; });
  refused(rts, [](ibv_qp_attr& a) { a.retry_cnt = 8; });
  refused(rts, [](ibv_qp_attr& a) { a.rnr_retry = 8; });
  ASSERT_EQ(modify(qp.get(), rts), 0);
  EXPECT_EQ(qp->state, IBV_QPS_RTS);
}

TEST_F(Objects, a_refused_modify_changes_nothing) {
  Cq cq = make_cq();
  Qp qp = make_qp(cq.get());
  ASSERT_EQ(modify(qp.get(), to_init(IBV_QPT_RC)), 0);
  Step rtr = to_rtr(IBV_QPT_RC, 77, first_gid(context.get()));
  rtr.mask &= ~IBV_QP_MIN_RNR_TIMER;
  EXPECT_EQ(modify(qp.get(), rtr), EINVAL);
  Step skip = to_rts(IBV_QPT_RC);
  EXPECT_EQ(modify(qp.get(), skip), EINVAL);
  Step wrong = to_init(IBV_QPT_RC);
  wrong.attr.qp_state = IBV_QPS_UNKNOWN;
  EXPECT_EQ(modify(qp.get(), wrong), EINVAL);
  ibv_qp_attr attr;
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_DEST_QPN, &init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_INIT);
  EXPECT_EQ(attr.dest_qp_num, 0u);
}

TEST_F(Objects, an_attribute_that_nobody_knows_yet_is_refused) {
  Cq cq = make_cq();
  Qp qp = make_qp(cq.get());
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(ibv_modify_qp(qp.get(), &attr, 1 << 26), EOPNOTSUPP);
  EXPECT_EQ(ibv_query_qp(qp.get(), &attr, 1 << 26, &init), EOPNOTSUPP);
}

TEST_F(Objects, a_wrong_current_state_is_refused) {
  Cq cq = make_cq();
  Qp qp = make_qp(cq.get());
  ASSERT_EQ(bring_up(qp.get(), qp->qp_num), 0);
  Step again{};
  again.attr.qp_state = IBV_QPS_RTS;
  again.attr.cur_qp_state = IBV_QPS_SQD;
  again.mask = IBV_QP_STATE | IBV_QP_CUR_STATE;
  EXPECT_EQ(modify(qp.get(), again), EINVAL);
  again.attr.cur_qp_state = IBV_QPS_RTS;
  EXPECT_EQ(modify(qp.get(), again), 0);
}

TEST_F(Objects, query_returns_what_modify_set) {
  Cq cq = make_cq();
  Qp qp = make_qp(cq.get());
  ASSERT_EQ(bring_up(qp.get(), qp->qp_num), 0);
  ibv_qp_attr attr;
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(qp.get(), &attr, (IBV_QP_DEST_QPN << 1) - 1, &init), 0);
  const Step rtr = to_rtr(IBV_QPT_RC, qp->qp_num, first_gid(context.get()));
  const Step rts = to_rts(IBV_QPT_RC);
  EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attr.cur_qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attr.path_mtu, rtr.attr.path_mtu);
  EXPECT_EQ(attr.dest_qp_num, qp->qp_num);
  EXPECT_EQ(attr.rq_psn, rtr.attr.rq_psn);
  EXPECT_EQ(attr.sq_psn, rts.attr.sq_psn);
  EXPECT_EQ(attr.timeout, rts.attr.timeout);
  EXPECT_EQ(attr.retry_cnt, rts.attr.retry_cnt);
  EXPECT_EQ(attr.rnr_retry, rts.attr.rnr_retry);
  EXPECT_EQ(attr.min_rnr_timer, rtr.attr.min_rnr_timer);
  EXPECT_EQ(attr.max_rd_atomic, rts.attr.max_rd_atomic);
  EXPECT_EQ(attr.max_dest_rd_atomic, rtr.attr.max_dest_rd_atomic);
  EXPECT_EQ(attr.port_num, 1);
  EXPECT_EQ(attr.qp_access_flags,
            unsigned{IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC});
  EXPECT_EQ(std::memcmp(&attr.ah_attr.grh.dgid, &rtr.attr.ah_attr.grh.dgid, sizeof(ibv_gid)), 0);
}

TEST_F(Objects, a_queue_pair_that_the_peer_put_into_error_says_so) {
  Cq cq = make_cq();
  Qp a = make_qp(cq.get()), b = make_qp(cq.get());
  connect(a.get(), b.get());
  Buffer memory(pd.get(), 8);
  ibv_sge sge = memory.all();
  ibv_send_wr wr = send_wr(1, sge, IBV_WR_RDMA_WRITE);
  ASSERT_EQ(post(a.get(), wr), 0);
  ASSERT_TRUE(completed(wait_for(cq.get()), 1, IBV_WC_REM_ACCESS_ERR));
  for (ibv_qp* qp : {a.get(), b.get()}) {
    ibv_qp_attr attr;
    ibv_qp_init_attr init;
    ASSERT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    EXPECT_EQ(attr.qp_state, IBV_QPS_ERR);
  }
}

// ---- shared receive queues and address handles

TEST_F(Objects, shared_receive_queues_check_their_arguments_and_answer_queries) {
  ibv_device_attr device;
  ASSERT_EQ(ibv_query_device(context.get(), &device), 0);
  const auto refused = [&](std::uint32_t wr, std::uint32_t sge) {
    ibv_srq_init_attr init{nullptr, {wr, sge, 0}};
    EXPECT_EQ(ibv_create_srq(pd.get(), &init), nullptr) << wr << " " << sge;
  };
  refused(0, 1);
  refused(static_cast<std::uint32_t>(device.max_srq_wr) + 1, 1);
  refused(1, static_cast<std::uint32_t>(device.max_srq_sge) + 1);
  ibv_srq_init_attr init{&device, {10, 2, 5}};
  Srq srq(ibv_create_srq(pd.get(), &init));
  ASSERT_TRUE(srq);
  EXPECT_EQ(srq->srq_context, &device);
  ibv_srq_attr attr;
  ASSERT_EQ(ibv_query_srq(srq.get(), &attr), 0);
  EXPECT_GE(attr.max_wr, 10u);
  EXPECT_GE(attr.max_sge, 2u);
  EXPECT_EQ(attr.srq_limit, 0u) << "the limit of the creation is ignored";
  attr.srq_limit = 4;
  ASSERT_EQ(ibv_modify_srq(srq.get(), &attr, IBV_SRQ_LIMIT), 0);
  ASSERT_EQ(ibv_query_srq(srq.get(), &attr), 0);
  EXPECT_EQ(attr.srq_limit, 4u);
  attr.srq_limit = attr.max_wr + 1;
  EXPECT_NE(ibv_modify_srq(srq.get(), &attr, IBV_SRQ_LIMIT), 0);
}

// As rdma-core writes it (libibverbs/verbs.c): programs keep what they know there.
TEST_F(Objects, the_public_state_of_a_queue_pair_is_what_was_asked_for) {
  const Cq cq = make_cq();
  const Qp a = make_qp(cq.get()), b = make_qp(cq.get());
  connect(a.get(), b.get());
  Buffer memory(pd.get(), 8);
  ibv_sge piece = memory.all();
  ibv_send_wr wr = send_wr(1, piece, IBV_WR_RDMA_WRITE);
  wr.wr.rdma = {.remote_addr = memory.addr(), .rkey = memory.rkey() + 1};
  ASSERT_EQ(post(a.get(), wr), 0);
  ASSERT_TRUE(completed(wait_for(cq.get()), 1, IBV_WC_REM_ACCESS_ERR));
  EXPECT_EQ(a->state, IBV_QPS_RTS);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(a.get(), &attr, IBV_QP_AV | IBV_QP_DEST_QPN, &init), 0);
  EXPECT_EQ(a->state, IBV_QPS_RTS);
  ASSERT_EQ(ibv_query_qp(a.get(), &attr, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(a->state, IBV_QPS_ERR);
  const Qp c = make_qp(cq.get());
  ASSERT_EQ(modify(c.get(), to_init(IBV_QPT_RC)), 0);
  c->state = IBV_QPS_UNKNOWN;
  attr = {};
  ASSERT_EQ(ibv_modify_qp(c.get(), &attr, IBV_QP_PKEY_INDEX), 0);
  EXPECT_EQ(c->state, IBV_QPS_UNKNOWN);
  EXPECT_EQ(ibv_get_device_index(context->device), -1) << "the kernel has no number for it";
}

TEST_F(Objects, address_handles_need_a_grh_or_the_ports_lid) {
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(context.get(), 1, &port), 0);
  ASSERT_NE(port.lid, 0);
  ibv_ah_attr attr{};
  attr.port_num = 1;
  errno = 0;
  EXPECT_EQ(ibv_create_ah(pd.get(), &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  attr.dlid = port.lid;
  EXPECT_TRUE(Ah(ibv_create_ah(pd.get(), &attr)));
}

TEST_F(Objects, address_handles_check_port_and_gid_index) {
  ibv_ah_attr attr{};
  attr.port_num = 2;
  EXPECT_EQ(ibv_create_ah(pd.get(), &attr), nullptr);
  attr.port_num = 1;
  attr.is_global = 1;
  attr.grh.sgid_index = 250;
  EXPECT_EQ(ibv_create_ah(pd.get(), &attr), nullptr);
  attr.grh.sgid_index = 0;
  attr.grh.dgid = first_gid(context.get());
  EXPECT_TRUE(Ah(ibv_create_ah(pd.get(), &attr)));
}

}  // namespace
}  // namespace weir::verbs_test
