// A port with a smaller MTU than the device: which messages fit, and which are refused.
#include <cerrno>
#include <cstdlib>

#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

constexpr std::size_t mtu_bytes = 1024;

class MtuTest : public VerbsTest {
 protected:
  // Read once by the library, so before the device is opened.
  static void SetUpTestSuite() {
    ::setenv("WEIR_MTU", "1024", 1);
    VerbsTest::SetUpTestSuite();
  }
};

TEST_F(MtuTest, is_the_ports_active_mtu_and_not_its_largest) {
  ibv_port_attr attr{};
  ASSERT_EQ(ibv_query_port(context.get(), 1, &attr), 0);
  EXPECT_EQ(attr.active_mtu, IBV_MTU_1024);
  EXPECT_EQ(attr.max_mtu, IBV_MTU_4096);
}

TEST_F(MtuTest, bounds_the_path_mtu_of_a_connection) {
  const std::pair<ibv_mtu, int> rows[] = {{IBV_MTU_2048, EINVAL}, {IBV_MTU_4096, EINVAL}, {IBV_MTU_1024, 0}};
  const Cq cq = make_cq();
  const Qp qp = make_qp(cq.get());
  ASSERT_EQ(modify(qp.get(), to_init(IBV_QPT_RC)), 0);
  for (const auto& [mtu, result] : rows) {
    Step step = to_rtr(IBV_QPT_RC, qp->qp_num, first_gid(context.get()));
    step.attr.path_mtu = mtu;
    EXPECT_EQ(modify(qp.get(), step), result) << mtu;
  }
}

TEST_F(MtuTest, bounds_a_datagram) {
  const Cq cq = make_cq(), peer_cq = make_cq();
  const Qp qp = make_qp(cq.get(), {.type = IBV_QPT_UD}), peer = make_qp(peer_cq.get(), {.type = IBV_QPT_UD});
  ASSERT_EQ(bring_up(qp.get(), 0), 0);
  ASSERT_EQ(bring_up(peer.get(), 0), 0);
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.grh.dgid = first_gid(context.get());
  const Ah ah(ibv_create_ah(pd.get(), &attr));
  ASSERT_TRUE(ah);
  ibv_qp_attr peers{};
  ibv_qp_init_attr ignored{};
  ASSERT_EQ(ibv_query_qp(peer.get(), &peers, IBV_QP_QKEY, &ignored), 0);

  Buffer buffer(pd.get(), 2 * mtu_bytes), landing(pd.get(), 2 * mtu_bytes);
  ASSERT_EQ(post_recv(peer.get(), 1, landing.all()), 0);
  const auto send = [&](std::uint64_t id, std::size_t bytes) {
    ibv_sge sge = buffer.sge(0, bytes);
    ibv_send_wr wr = send_wr(id, sge);
    wr.wr.ud = {ah.get(), peer->qp_num, peers.qkey};
    EXPECT_EQ(post(qp.get(), wr), 0);
    return wait_for(cq.get());
  };
  EXPECT_TRUE(completed(send(2, mtu_bytes), 2));
  EXPECT_TRUE(completed(wait_for(peer_cq.get()), 1));
  EXPECT_TRUE(completed(send(3, mtu_bytes + 1), 3, IBV_WC_LOC_LEN_ERR));
}

}  // namespace
}  // namespace weir::verbs_test
