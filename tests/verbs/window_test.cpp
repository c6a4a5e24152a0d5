// Memory windows through the C ABI: types 1 and 2, both ways of posting, arguments, teardown order,
// zero-based regions.
#include <algorithm>
#include <cerrno>

#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

using Mw = std::unique_ptr<ibv_mw, Destroyer<ibv_dealloc_mw>>;
constexpr unsigned grant_all = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

class Windows : public ConnectedTest {
 protected:
  Mw window(ibv_mw_type type) { return Mw(ibv_alloc_mw(pd.get(), type)); }
  // With LOCAL_WRITE, as programs pass it on.
  ibv_mw_bind_info whole() {
    return {region.mr(), region.addr(), region.size(), grant_all | IBV_ACCESS_LOCAL_WRITE};
  }
  int bind_type_1(ibv_mw* mw, const ibv_mw_bind_info& info) {
    ibv_mw_bind bind{.wr_id = 9, .send_flags = IBV_SEND_SIGNALED, .bind_info = info};
    return ibv_bind_mw(b.get(), mw, &bind);
  }
  int bind_type_2(ibv_mw* mw, std::uint32_t rkey) {
    ibv_send_wr wr{};
    wr.wr_id = 9;
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = rkey;
    wr.bind_mw.bind_info = whole();
    return post(b.get(), wr);
  }
  testing::AssertionResult writes(std::uint32_t rkey, ibv_wc_status status = IBV_WC_SUCCESS) {
    ibv_sge sge = from.sge(0, 64);
    ibv_send_wr wr = send_wr(1, sge, IBV_WR_RDMA_WRITE);
    wr.wr.rdma = {region.addr(), rkey};
    if (const int error = post(a.get(), wr)) return testing::AssertionFailure() << "post: " << error;
    return completed(wait_for(a_cq.get()), 1, status);
  }

  Buffer from{pd.get(), 64}, region{pd.get(), 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND};
};

TEST_F(Windows, of_type_1_are_bound_by_ibv_bind_mw) {
  Mw mw = window(IBV_MW_TYPE_1);
  ASSERT_TRUE(mw);
  EXPECT_EQ(mw->type, IBV_MW_TYPE_1);
  EXPECT_EQ(mw->pd, pd.get());
  const std::uint32_t before = mw->rkey;
  ASSERT_EQ(bind_type_1(mw.get(), whole()), 0);
  EXPECT_NE(mw->rkey, before);
  const auto wc = wait_for(b_cq.get());
  ASSERT_TRUE(completed(wc, 9));
  EXPECT_EQ(wc->opcode, IBV_WC_BIND_MW);
  from.fill(8);
  EXPECT_TRUE(writes(mw->rkey));
  EXPECT_EQ(std::memcmp(region.data(), from.data(), 64), 0);
  const std::uint32_t bound = mw->rkey;
  ASSERT_EQ(bind_type_1(mw.get(), {nullptr, 0, 0, 0}), 0);
  ASSERT_TRUE(completed(wait_for(b_cq.get()), 9));
  EXPECT_TRUE(writes(bound, IBV_WC_REM_ACCESS_ERR));
}

TEST_F(Windows, of_type_2_are_bound_and_invalidated_by_work_requests) {
  Mw mw = window(IBV_MW_TYPE_2);
  ASSERT_TRUE(mw);
  const std::uint32_t rkey = ibv_inc_rkey(mw->rkey);
  ASSERT_EQ(bind_type_2(mw.get(), rkey), 0);
  ASSERT_TRUE(completed(wait_for(b_cq.get()), 9));
  EXPECT_TRUE(writes(rkey));
  ibv_send_wr wr{};
  wr.wr_id = 10;
  wr.opcode = IBV_WR_LOCAL_INV;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.invalidate_rkey = rkey;
  ASSERT_EQ(post(b.get(), wr), 0);
  const auto wc = wait_for(b_cq.get());
  ASSERT_TRUE(completed(wc, 10));
  EXPECT_EQ(wc->opcode, IBV_WC_LOCAL_INV);
  EXPECT_TRUE(writes(rkey, IBV_WC_REM_ACCESS_ERR));
}

TEST_F(Windows, are_invalidated_by_the_peers_send) {
  Mw mw = window(IBV_MW_TYPE_2);
  const std::uint32_t rkey = ibv_inc_rkey(mw->rkey);
  ASSERT_EQ(bind_type_2(mw.get(), rkey), 0);
  ASSERT_TRUE(completed(wait_for(b_cq.get()), 9));
  ASSERT_EQ(post_recv(b.get(), 11), 0);
  ibv_sge sge = from.sge(0, 0);
  ibv_send_wr wr = send_wr(12, sge, IBV_WR_SEND_WITH_INV);
  wr.invalidate_rkey = rkey;
  ASSERT_EQ(post(a.get(), wr), 0);
  ASSERT_TRUE(completed(wait_for(a_cq.get()), 12));
  const auto wc = wait_for(b_cq.get());
  ASSERT_TRUE(completed(wc, 11));
  EXPECT_EQ(wc->wc_flags, unsigned{IBV_WC_WITH_INV});
  EXPECT_EQ(wc->invalidated_rkey, rkey);
  EXPECT_TRUE(writes(rkey, IBV_WC_REM_ACCESS_ERR));
}

TEST_F(Windows, have_their_builders) {
  ibv_qp_init_attr_ex init{};
  init.send_cq = init.recv_cq = b_cq.get();
  init.cap = {8, 8, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.pd = pd.get();
  init.send_ops_flags = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV;
  Qp one(ibv_create_qp_ex(context.get(), &init)), other(ibv_create_qp_ex(context.get(), &init));
  ASSERT_TRUE(one && other);
  connect(one.get(), other.get());
  Mw mine = window(IBV_MW_TYPE_2), theirs = window(IBV_MW_TYPE_2);
  const std::uint32_t my_key = ibv_inc_rkey(mine->rkey), their_key = ibv_inc_rkey(theirs->rkey);
  const ibv_mw_bind_info info = whole();
  const auto begin = [](Qp& qp, std::uint64_t id) {
    ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp.get());
    ibv_wr_start(ex);
    ex->wr_id = id;
    ex->wr_flags = IBV_SEND_SIGNALED;
    return ex;
  };
  ibv_qp_ex* ex = begin(other, 1);
  ibv_wr_bind_mw(ex, theirs.get(), their_key, &info);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  ASSERT_TRUE(completed(wait_for(b_cq.get()), 1));
  ASSERT_EQ(post_recv(other.get(), 2), 0);

  ex = begin(one, 3);
  ibv_wr_bind_mw(ex, mine.get(), my_key, &info);
  ex->wr_id = 4;
  ibv_wr_local_inv(ex, my_key);
  ex->wr_id = 5;
  ibv_wr_send_inv(ex, their_key);
  ibv_wr_set_sge(ex, from.lkey(), from.addr(), 4);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 4; ++i) {
    const auto wc = wait_for(b_cq.get());
    ASSERT_TRUE(wc);
    EXPECT_EQ(wc->status, wc->wr_id == 2   ? IBV_WC_LOC_LEN_ERR
                          : wc->wr_id == 5 ? IBV_WC_REM_INV_REQ_ERR
                                           : IBV_WC_SUCCESS)
        << "the receive has no room for four bytes";
    ids.push_back(wc->wr_id);
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{2, 3, 4, 5}));

  ibv_wr_start(ex);
  ibv_wr_bind_mw(ex, mine.get(), their_key, &info);
  EXPECT_EQ(ibv_wr_complete(ex), EINVAL) << "another window's key";
}

TEST_F(Windows, check_their_arguments) {
  errno = 0;
  EXPECT_EQ(ibv_alloc_mw(pd.get(), static_cast<ibv_mw_type>(3)), nullptr);
  EXPECT_EQ(errno, EINVAL);
  Mw one = window(IBV_MW_TYPE_1), two = window(IBV_MW_TYPE_2);
  EXPECT_EQ(bind_type_1(two.get(), whole()), EINVAL) << "ibv_bind_mw is for type 1";
  EXPECT_EQ(bind_type_2(one.get(), ibv_inc_rkey(one->rkey)), EINVAL) << "IBV_WR_BIND_MW is for type 2";
  EXPECT_EQ(bind_type_2(two.get(), one->rkey), EINVAL) << "another window's key";
  EXPECT_EQ(bind_type_1(one.get(), {nullptr, 0, 8, 0}), EINVAL) << "bytes of no region";
  ibv_mw_bind_info nested = whole();
  nested.mw_access_flags = IBV_ACCESS_MW_BIND;
  EXPECT_EQ(bind_type_1(one.get(), nested), EINVAL) << "a right that no window has";
  Pd other(ibv_alloc_pd(context.get()));
  Buffer elsewhere(other.get(), 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  EXPECT_EQ(bind_type_1(one.get(), {elsewhere.mr(), elsewhere.addr(), 64, 0}), EPERM);
  EXPECT_FALSE(poll_once(b_cq.get()));
}

TEST_F(Windows, keep_their_region_and_domain) {
  Pd domain(ibv_alloc_pd(context.get()));
  {
    Mw mw(ibv_alloc_mw(domain.get(), IBV_MW_TYPE_1));
    EXPECT_EQ(ibv_dealloc_pd(domain.get()), EBUSY);
  }
  Mw mw = window(IBV_MW_TYPE_1);
  ASSERT_EQ(bind_type_1(mw.get(), whole()), 0);
  ASSERT_TRUE(completed(wait_for(b_cq.get()), 9));
  EXPECT_EQ(ibv_dereg_mr(region.mr()), EBUSY);
  EXPECT_NE(
      ibv_rereg_mr(region.mr(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_LOCAL_WRITE), 0);
  EXPECT_TRUE(writes(mw->rkey)) << "the region is as it was";
  mw.reset();
  region.deregister();
}

TEST_F(Windows, are_what_the_device_says) {
  ibv_device_attr device;
  ASSERT_EQ(ibv_query_device(context.get(), &device), 0);
  EXPECT_GT(device.max_mw, 0);
  EXPECT_TRUE(device.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
  EXPECT_TRUE(device.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
}

TEST_F(Windows, a_zero_based_region_is_addressed_from_its_beginning) {
  std::vector<std::uint8_t> memory(256);
  Mr mr(ibv_reg_mr(pd.get(), memory.data(), memory.size(), all_access | IBV_ACCESS_ZERO_BASED));
  ASSERT_TRUE(mr);
  from.fill(4);
  ibv_sge sge = from.sge(0, 32);
  ibv_send_wr wr = send_wr(1, sge, IBV_WR_RDMA_WRITE);
  wr.wr.rdma = {100, mr->rkey};
  ASSERT_EQ(post(a.get(), wr), 0);
  ASSERT_TRUE(completed(wait_for(a_cq.get()), 1));
  EXPECT_EQ(std::memcmp(memory.data() + 100, from.data(), 32), 0);
}

}  // namespace
}  // namespace weir::verbs_test
