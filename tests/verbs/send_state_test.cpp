// Send queue states through the C ABI: SQE of unreliable queue pairs, SQD and its event, and leaving SQE.
#include <cerrno>

#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

class SendStates : public VerbsTest {
 protected:
  static ibv_qp_state state_of(ibv_qp* qp) { return query(qp).qp_state; }
  static ibv_qp_attr query(ibv_qp* qp) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init;
    EXPECT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    return attr;
  }
  static int to(ibv_qp* qp, ibv_qp_state state, int more = 0) {
    Step step{};
    step.attr.qp_state = state;
    step.attr.cur_qp_state = query(qp).qp_state;
    step.attr.en_sqd_async_notify = 1;
    step.attr.path_mig_state = IBV_MIG_REARM;
    step.mask = IBV_QP_STATE | more;
    return modify(qp, step);
  }
  Cq cq = make_cq(), other_cq = make_cq();
};

TEST_F(SendStates, an_unreliable_queue_pair_comes_back_from_a_send_error) {
  for (const ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_UD}) {
    SCOPED_TRACE(type);
    Qp qp = make_qp(cq.get(), {.type = type}), peer = make_qp(other_cq.get(), {.type = type});
    connect(qp.get(), peer.get());
    ibv_ah_attr address{};
    address.port_num = 1;
    address.is_global = 1;
    address.grh.dgid = first_gid(context.get());
    Ah ah(ibv_create_ah(pd.get(), &address));
    std::uint8_t byte = 0;
    ibv_sge wrong{reinterpret_cast<std::uint64_t>(&byte), 1, 0x123}, none{};
    ibv_send_wr wr = send_wr(1, wrong);
    if (type == IBV_QPT_UD) wr.wr.ud = {ah.get(), peer->qp_num, 0x1111};
    ASSERT_EQ(post(qp.get(), wr), 0);
    EXPECT_TRUE(completed(wait_for(cq.get()), 1, IBV_WC_LOC_PROT_ERR));
    EXPECT_EQ(state_of(qp.get()), IBV_QPS_SQE);
    ASSERT_EQ(to(qp.get(), IBV_QPS_RTS, IBV_QP_CUR_STATE), 0);
    wr.sg_list = &none;
    wr.num_sge = 0;
    ASSERT_EQ(post_recv(peer.get(), 2), 0);
    ASSERT_EQ(post(qp.get(), wr), 0);
    EXPECT_TRUE(completed(wait_for(cq.get()), 1));
  }
}

TEST_F(SendStates, a_drained_send_queue_is_an_event_to_those_who_asked) {
  Qp qp = make_qp(cq.get()), peer = make_qp(other_cq.get());
  connect(qp.get(), peer.get());
  ASSERT_EQ(to(qp.get(), IBV_QPS_SQD), 0);
  EXPECT_EQ(state_of(qp.get()), IBV_QPS_SQD);
  EXPECT_FALSE(readable(context->async_fd));
  ASSERT_EQ(to(qp.get(), IBV_QPS_RTS), 0);
  ASSERT_EQ(to(qp.get(), IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
  EXPECT_FALSE(query(qp.get()).sq_draining);
  ASSERT_TRUE(readable(context->async_fd));
  ibv_async_event event;
  ASSERT_EQ(ibv_get_async_event(context.get(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_SQ_DRAINED);
  EXPECT_EQ(event.element.qp, qp.get());
  ibv_ack_async_event(&event);
}

TEST_F(SendStates, a_send_queue_with_a_request_under_way_is_draining) {
  Qp qp = make_qp(cq.get()), peer = make_qp(other_cq.get());
  connect(qp.get(), peer.get());
  ibv_sge none{};
  ibv_send_wr wr = send_wr(1, none);
  wr.num_sge = 0;
  ASSERT_EQ(post(qp.get(), wr), 0);  // waits for a receive
  ASSERT_EQ(to(qp.get(), IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
  EXPECT_TRUE(query(qp.get()).sq_draining);
  EXPECT_FALSE(readable(context->async_fd));
  ASSERT_EQ(post_recv(peer.get(), 2), 0);
  EXPECT_TRUE(completed(wait_for(cq.get()), 1));
  ASSERT_TRUE(readable(context->async_fd, 60'000));
  ibv_async_event event;
  ASSERT_EQ(ibv_get_async_event(context.get(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_SQ_DRAINED);
  ibv_ack_async_event(&event);
}

TEST_F(SendStates, there_is_no_path_to_migrate_to) {
  Qp qp = make_qp(cq.get()), peer = make_qp(other_cq.get());
  connect(qp.get(), peer.get());
  EXPECT_EQ(to(qp.get(), IBV_QPS_RTS, IBV_QP_PATH_MIG_STATE), EINVAL);
  EXPECT_EQ(to(qp.get(), IBV_QPS_RTS, IBV_QP_ALT_PATH), EINVAL);
  EXPECT_EQ(query(qp.get()).path_mig_state, IBV_MIG_MIGRATED);
}

}  // namespace
}  // namespace weir::verbs_test
