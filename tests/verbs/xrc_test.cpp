// XRC through the C ABI: domains, SRQ numbers, both kinds of queue pairs and further handles on them, data.
#include <cerrno>

#include "xrc_side.hpp"

namespace weir::verbs_test {
namespace {

class Xrc : public VerbsTest {
 protected:
  Xrcd open_domain(int fd = -1, int oflags = O_CREAT) { return open_xrcd(context.get(), fd, oflags); }
  Srq make_srq(ibv_xrcd* xrcd, ibv_cq* cq) { return make_xrc_srq(pd.get(), xrcd, cq); }
  Qp make_sender(ibv_cq* cq) { return make_xrc_sender(pd.get(), cq); }
  Cq send_cq = make_cq(), recv_cq = make_cq();
  Buffer from{pd.get(), 4096}, to{pd.get(), 4096};
};

TEST_F(Xrc, a_send_is_reported_by_the_cq_of_its_srq) {
  Xrcd xrcd = open_domain();
  ASSERT_TRUE(xrcd);
  Srq srq = make_srq(xrcd.get(), recv_cq.get());
  ASSERT_TRUE(srq);
  Qp sender = make_sender(send_cq.get()), target = make_xrc_target(xrcd.get());
  ASSERT_TRUE(sender && target);
  ASSERT_EQ(bring_up_xrc(sender.get(), target->qp_num), 0);
  ASSERT_EQ(bring_up_xrc(target.get(), sender->qp_num), 0);
  ASSERT_EQ(post_xrc_receive(srq.get(), 7, to.all()), 0);
  from.fill(5);
  ibv_sge sge = from.all();
  ibv_send_wr wr = send_wr(1, sge);
  wr.qp_type.xrc.remote_srqn = number_of(srq.get());
  ASSERT_EQ(post(sender.get(), wr), 0);
  EXPECT_TRUE(completed(wait_for(send_cq.get()), 1));
  const auto wc = wait_for(recv_cq.get());
  ASSERT_TRUE(completed(wc, 7));
  EXPECT_EQ(wc->opcode, IBV_WC_RECV);
  EXPECT_EQ(wc->qp_num, target->qp_num);
  EXPECT_EQ(wc->byte_len, 4096u);
  EXPECT_EQ(to.bytes(), from.bytes());
}

TEST_F(Xrc, the_builders_name_the_srq) {
  Xrcd xrcd = open_domain();
  Srq srq = make_srq(xrcd.get(), recv_cq.get());
  Qp sender = make_xrc_sender(pd.get(), send_cq.get(), Builders::yes), target = make_xrc_target(xrcd.get());
  ASSERT_TRUE(sender && target);
  ASSERT_EQ(bring_up_xrc(sender.get(), target->qp_num), 0);
  ASSERT_EQ(bring_up_xrc(target.get(), sender->qp_num), 0);
  ASSERT_EQ(post_xrc_receive(srq.get(), 7, to.all()), 0);
  ibv_qp_ex* ex = ibv_qp_to_qp_ex(sender.get());
  ibv_wr_start(ex);
  ex->wr_id = 3;
  ex->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(ex);
  ibv_wr_set_xrc_srqn(ex, number_of(srq.get()));
  ibv_wr_set_sge(ex, from.lkey(), from.addr(), 10);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  EXPECT_TRUE(completed(wait_for(send_cq.get()), 3));
  EXPECT_TRUE(completed(wait_for(recv_cq.get()), 7));
}

TEST_F(Xrc, a_file_names_a_domain) {
  DomainFile file, other;
  EXPECT_FALSE(open_domain(file.fd(), 0)) << "nobody has made it yet";
  EXPECT_EQ(errno, EAGAIN);
  Xrcd first = open_domain(file.fd(), O_CREAT);
  ASSERT_TRUE(first);
  EXPECT_TRUE(open_domain(file.fd(), 0));
  EXPECT_FALSE(open_domain(file.fd(), O_CREAT | O_EXCL));
  EXPECT_EQ(errno, EINVAL);
  EXPECT_TRUE(open_domain(other.fd(), O_CREAT | O_EXCL));
  EXPECT_FALSE(open_domain(9999, O_CREAT));
  EXPECT_EQ(errno, EBADF);
  // An SRQ by one handle, a queue pair by another.
  Xrcd second = open_domain(file.fd(), 0);
  Srq srq = make_srq(first.get(), recv_cq.get());
  Qp sender = make_sender(send_cq.get()), target = make_xrc_target(second.get());
  ASSERT_EQ(bring_up_xrc(sender.get(), target->qp_num), 0);
  ASSERT_EQ(bring_up_xrc(target.get(), sender->qp_num), 0);
  ASSERT_EQ(post_xrc_receive(srq.get(), 7, to.all()), 0);
  ibv_sge sge = from.sge(0, 8);
  ibv_send_wr wr = send_wr(1, sge);
  wr.qp_type.xrc.remote_srqn = number_of(srq.get());
  ASSERT_EQ(post(sender.get(), wr), 0);
  EXPECT_TRUE(completed(wait_for(send_cq.get()), 1));
}

TEST_F(Xrc, a_queue_pair_lives_while_somebody_has_it_open) {
  Xrcd xrcd = open_domain(), stranger = open_domain();
  Srq srq = make_srq(xrcd.get(), recv_cq.get());
  Qp sender = make_sender(send_cq.get()), target = make_xrc_target(xrcd.get());
  ibv_qp_open_attr open{};
  open.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  open.qp_num = target->qp_num;
  open.xrcd = stranger.get();
  open.qp_type = IBV_QPT_XRC_RECV;
  EXPECT_EQ(ibv_open_qp(context.get(), &open), nullptr) << "of another domain";
  EXPECT_EQ(errno, EINVAL);
  open.xrcd = xrcd.get();
  Qp again(ibv_open_qp(context.get(), &open));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->qp_num, target->qp_num);
  ASSERT_EQ(bring_up_xrc(sender.get(), target->qp_num), 0);
  ASSERT_EQ(bring_up_xrc(again.get(), sender->qp_num), 0);
  target.reset();
  ASSERT_EQ(post_xrc_receive(srq.get(), 7, to.all()), 0);
  ibv_sge sge = from.sge(0, 8);
  ibv_send_wr wr = send_wr(1, sge);
  wr.qp_type.xrc.remote_srqn = number_of(srq.get());
  ASSERT_EQ(post(sender.get(), wr), 0);
  EXPECT_TRUE(completed(wait_for(send_cq.get()), 1));
  again.reset();
  EXPECT_EQ(ibv_open_qp(context.get(), &open), nullptr) << "nobody has it any more";
}

TEST_F(Xrc, what_is_in_use_is_not_taken_apart) {
  Xrcd xrcd = open_domain();
  Cq cq = make_cq();
  {
    Srq srq = make_srq(xrcd.get(), cq.get());
    EXPECT_EQ(ibv_close_xrcd(xrcd.get()), EBUSY);
    EXPECT_EQ(ibv_destroy_cq(cq.get()), EBUSY);
  }
  {
    Qp target = make_xrc_target(xrcd.get());
    EXPECT_EQ(ibv_close_xrcd(xrcd.get()), EBUSY);
  }
}

TEST_F(Xrc, what_is_missing_is_refused) {
  Xrcd xrcd = open_domain();
  errno = 0;
  ibv_srq_init_attr_ex srq{};
  srq.attr = {8, 1, 0};
  srq.pd = pd.get();
  srq.srq_type = IBV_SRQT_XRC;
  srq.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD;
  srq.xrcd = xrcd.get();
  EXPECT_EQ(ibv_create_srq_ex(context.get(), &srq), nullptr) << "no CQ";
  EXPECT_EQ(errno, EINVAL);
  srq.srq_type = IBV_SRQT_TM;
  EXPECT_EQ(ibv_create_srq_ex(context.get(), &srq), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ibv_qp_init_attr_ex target{};
  target.qp_type = IBV_QPT_XRC_RECV;
  target.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  EXPECT_EQ(ibv_create_qp_ex(context.get(), &target), nullptr) << "no domain";
  EXPECT_EQ(errno, EINVAL);
  EXPECT_FALSE(make_sender(nullptr));
  ibv_xrcd_init_attr incomplete{IBV_XRCD_INIT_ATTR_FD, -1, O_CREAT};
  EXPECT_EQ(ibv_open_xrcd(context.get(), &incomplete), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_srq_init_attr plain{nullptr, {8, 1, 0}};
  Srq basic(ibv_create_srq(pd.get(), &plain));
  std::uint32_t number;
  EXPECT_NE(ibv_get_srq_num(basic.get(), &number), 0) << "only an XRC SRQ has a number";
}

}  // namespace
}  // namespace weir::verbs_test
