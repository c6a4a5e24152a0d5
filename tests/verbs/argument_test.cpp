// Arguments that the kernel's verbs check, and that a library alone might accept.
#include <endian.h>

#include <cerrno>

#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

class Arguments : public VerbsTest {};

TEST_F(Arguments, modifying_a_shared_receive_queue_does_all_that_its_mask_says_or_nothing) {
  ibv_srq_init_attr init{nullptr, {10, 1, 0}};
  Srq srq(ibv_create_srq(pd.get(), &init));
  ibv_srq_attr attr{.max_wr = 10, .max_sge = 1, .srq_limit = 3};
  const auto limit = [&] {
    ibv_srq_attr now{};
    EXPECT_EQ(ibv_query_srq(srq.get(), &now), 0);
    return now.srq_limit;
  };
  EXPECT_EQ(ibv_modify_srq(srq.get(), &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
  EXPECT_EQ(limit(), 3u);
  attr = {.max_wr = 1u << 20, .max_sge = 1, .srq_limit = 5};
  EXPECT_EQ(ibv_modify_srq(srq.get(), &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EOPNOTSUPP);
  EXPECT_EQ(ibv_modify_srq(srq.get(), &attr, IBV_SRQ_LIMIT | 1 << 5), EINVAL);
  EXPECT_EQ(limit(), 3u);
}

// ibv_modify_srq(3): programs look at the capability, and then count on it.
TEST_F(Arguments, a_device_that_resizes_no_shared_receive_queue_does_not_say_that_it_does) {
  ibv_device_attr device{};
  ASSERT_EQ(ibv_query_device(context.get(), &device), 0);
  ibv_srq_init_attr init{nullptr, {10, 1, 0}};
  Srq srq(ibv_create_srq(pd.get(), &init));
  ibv_srq_attr attr{.max_wr = 20, .max_sge = 1, .srq_limit = 0};
  const bool resizes = ibv_modify_srq(srq.get(), &attr, IBV_SRQ_MAX_WR) == 0;
  EXPECT_EQ((device.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) != 0, resizes);
}

TEST_F(Arguments, a_receive_for_a_queue_pair_that_has_a_shared_receive_queue_is_refused_and_changes_nothing) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UD}) {
    ibv_srq_init_attr init{nullptr, {10, 1, 0}};
    Srq srq(ibv_create_srq(pd.get(), &init));
    Cq cq = make_cq();
    Qp sender = make_qp(cq.get(), {.type = type}), qp = make_qp(cq.get(), {.type = type, .srq = srq.get()});
    connect(sender.get(), qp.get());
    Buffer from(pd.get(), 64), to(pd.get(), 64 + 40);
    EXPECT_EQ(post_recv(qp.get(), 1, to.all()), EINVAL);

    ibv_sge into = to.all(), sge = from.sge(0, 8);
    ibv_recv_wr receive{.wr_id = 2, .next = nullptr, .sg_list = &into, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(srq.get(), &receive, &bad), 0);
    ibv_ah_attr address{};
    address.port_num = address.is_global = 1;
    address.grh.dgid = first_gid(context.get());
    Ah ah(ibv_create_ah(pd.get(), &address));
    ibv_send_wr wr = send_wr(3, sge, IBV_WR_SEND, 0);
    if (type == IBV_QPT_UD) wr.wr.ud = {ah.get(), qp->qp_num, 0x1111};
    ASSERT_EQ(post(sender.get(), wr), 0);
    EXPECT_TRUE(completed(poll_once(cq.get()), 2));
  }
}

TEST_F(Arguments, objects_of_another_context_are_refused) {
  const Context other = open_device();
  const Cq ours = make_cq(), theirs(ibv_create_cq(other.get(), 8, nullptr, nullptr, 0));
  const Pd their_pd(ibv_alloc_pd(other.get()));
  const Channel channel(ibv_create_comp_channel(other.get()));
  ibv_srq_init_attr srq_init{nullptr, {8, 1, 0}};
  const Srq srq(ibv_create_srq(their_pd.get(), &srq_init));
  const auto refused = [&](ibv_cq* send_cq, ibv_cq* recv_cq, ibv_srq* from) {
    ibv_qp_init_attr init = init_attr(send_cq, {.srq = from});
    init.recv_cq = recv_cq;
    errno = 0;
    EXPECT_EQ(ibv_create_qp(pd.get(), &init), nullptr);
    return errno;
  };
  EXPECT_EQ(refused(theirs.get(), ours.get(), nullptr), EINVAL);
  EXPECT_EQ(refused(ours.get(), theirs.get(), nullptr), EINVAL);
  EXPECT_EQ(refused(ours.get(), ours.get(), srq.get()), EINVAL);
  errno = 0;
  EXPECT_EQ(ibv_create_cq(context.get(), 8, nullptr, channel.get(), 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(Arguments, packet_sequence_numbers_have_24_bits) {
  Cq cq = make_cq();
  Qp qp = make_qp(cq.get());
  Step rtr = to_rtr(IBV_QPT_RC, qp->qp_num, first_gid(context.get()));
  rtr.attr.rq_psn = 0x12345678;
  Step init = to_init(IBV_QPT_RC);
  ASSERT_EQ(ibv_modify_qp(qp.get(), &init.attr, init.mask), 0);
  ASSERT_EQ(ibv_modify_qp(qp.get(), &rtr.attr, rtr.mask), 0);
  ibv_qp_attr attr;
  ibv_qp_init_attr made;
  ASSERT_EQ(ibv_query_qp(qp.get(), &attr, IBV_QP_RQ_PSN, &made), 0);
  EXPECT_EQ(attr.rq_psn, 0x345678u);
}

TEST_F(Arguments, an_address_handle_for_an_answer_has_the_flow_label_of_what_came) {
  ibv_grh grh{};
  grh.version_tclass_flow = htobe32(6u << 28 | 0xabu << 20 | 0x54321u);
  ibv_wc wc{};
  wc.wc_flags = IBV_WC_GRH;
  ibv_ah_attr attr{};
  ASSERT_EQ(ibv_init_ah_from_wc(context.get(), 1, &wc, &grh, &attr), 0);
  EXPECT_EQ(attr.grh.flow_label, 0x54321u);
  EXPECT_EQ(attr.grh.traffic_class, 0xab);
}

}  // namespace
}  // namespace weir::verbs_test
