// Atomics through the C ABI: both ways of posting, what the device reports about them, limits of modify.
#include <cerrno>

#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

class Atomics : public ConnectedTest {
 protected:
  ibv_send_wr request(ibv_wr_opcode opcode, std::uint64_t compare_add, std::uint64_t swap = 0) {
    result_sge = result.all();
    ibv_send_wr wr = send_wr(1, result_sge, opcode);
    wr.wr.atomic = {target.addr(), compare_add, swap, target.rkey()};
    return wr;
  }
  std::uint64_t& word(Buffer& buffer) { return *reinterpret_cast<std::uint64_t*>(buffer.data()); }

  Buffer target{pd.get(), 8}, result{pd.get(), 8};
  ibv_sge result_sge{};
};

TEST_F(Atomics, work_by_post_send) {
  word(target) = 40;
  ASSERT_EQ(post(a.get(), request(IBV_WR_ATOMIC_FETCH_AND_ADD, 2)), 0);
  auto wc = wait_for(a_cq.get());
  ASSERT_TRUE(completed(wc, 1));
  EXPECT_EQ(wc->opcode, IBV_WC_FETCH_ADD);
  EXPECT_EQ(wc->byte_len, 8u);
  EXPECT_EQ(word(result), 40u);
  EXPECT_EQ(word(target), 42u);
  ASSERT_EQ(post(a.get(), request(IBV_WR_ATOMIC_CMP_AND_SWP, 42, 7)), 0);
  wc = wait_for(a_cq.get());
  ASSERT_TRUE(completed(wc, 1));
  EXPECT_EQ(wc->opcode, IBV_WC_COMP_SWAP);
  EXPECT_EQ(word(result), 42u);
  EXPECT_EQ(word(target), 7u);
  EXPECT_FALSE(poll_once(b_cq.get())) << "the target's queue pair has no part in it";
}

TEST_F(Atomics, work_by_the_builders) {
  ibv_qp_init_attr_ex init{};
  init.send_cq = init.recv_cq = a_cq.get();
  init.cap = {8, 8, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.pd = pd.get();
  init.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  Qp qp(ibv_create_qp_ex(context.get(), &init));
  ASSERT_TRUE(qp);
  Qp peer = make_qp(b_cq.get());
  connect(qp.get(), peer.get());
  ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp.get());
  word(target) = 1;
  ibv_wr_start(ex);
  ex->wr_id = 5;
  ex->wr_flags = 0;
  ibv_wr_atomic_fetch_add(ex, target.rkey(), target.addr(), 10);
  ibv_wr_set_sge(ex, result.lkey(), result.addr(), 8);
  ex->wr_id = 6;
  ex->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_atomic_cmp_swp(ex, target.rkey(), target.addr(), 11, 99);
  ibv_wr_set_sge(ex, result.lkey(), result.addr(), 8);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  EXPECT_TRUE(completed(wait_for(a_cq.get()), 6));
  EXPECT_EQ(word(result), 11u);
  EXPECT_EQ(word(target), 99u);
}

TEST_F(Atomics, are_what_the_device_says) {
  ibv_device_attr device;
  ASSERT_EQ(ibv_query_device(context.get(), &device), 0);
  EXPECT_EQ(device.atomic_cap, IBV_ATOMIC_HCA);
}

TEST_F(Atomics, depths_beyond_the_limits_are_refused) {
  ibv_device_attr device;
  ASSERT_EQ(ibv_query_device(context.get(), &device), 0);
  Qp qp = make_qp(a_cq.get());
  ASSERT_EQ(modify(qp.get(), to_init(IBV_QPT_RC)), 0);
  Step rtr = to_rtr(IBV_QPT_RC, b->qp_num, first_gid(context.get()));
  rtr.attr.max_dest_rd_atomic = static_cast<std::uint8_t>(device.max_qp_rd_atom + 1);
  EXPECT_EQ(modify(qp.get(), rtr), EINVAL);
  rtr.attr.max_dest_rd_atomic = static_cast<std::uint8_t>(device.max_qp_rd_atom);
  EXPECT_EQ(modify(qp.get(), rtr), 0);
  Step rts = to_rts(IBV_QPT_RC);
  rts.attr.max_rd_atomic = static_cast<std::uint8_t>(device.max_qp_init_rd_atom + 1);
  EXPECT_EQ(modify(qp.get(), rts), EINVAL);
  rts.attr.max_rd_atomic = static_cast<std::uint8_t>(device.max_qp_init_rd_atom);
  EXPECT_EQ(modify(qp.get(), rts), 0);
}

}  // namespace
}  // namespace weir::verbs_test
