// Answering a datagram by what its completion and its GRH say (ibv_create_ah_from_wc(3)).
#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

class AddressHandles : public VerbsTest {
 protected:
  AddressHandles() : cq(make_cq()), a(make_qp(cq.get(), ud)), b(make_qp(cq.get(), ud)) {
    EXPECT_EQ(bring_up(a.get(), 0), 0);
    EXPECT_EQ(bring_up(b.get(), 0), 0);
  }
  int send(ibv_qp* qp, std::uint64_t id, ibv_ah* ah, std::uint32_t qpn) {
    ibv_sge sge = from.sge(0, 10);
    ibv_send_wr wr = send_wr(id, sge, IBV_WR_SEND, 0);
    wr.wr.ud = {ah, qpn, 0x1111};
    return post(qp, wr);
  }

  static constexpr QpOptions ud{.type = IBV_QPT_UD};
  Buffer from{pd.get(), 64}, to{pd.get(), 4096};
  Cq cq;
  Qp a, b;
};

// Old programs exchange LIDs, and answer all the same by what came (rdma-core's ibv_init_ah_from_wc() has LID
// and GRH alike).
TEST_F(AddressHandles, of_a_datagram_sent_to_a_lid_lead_back_to_its_sender) {
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(context.get(), 1, &port), 0);
  ibv_ah_attr attr{};
  attr.port_num = 1;
  attr.dlid = port.lid;
  const Ah there(ibv_create_ah(pd.get(), &attr));
  ASSERT_EQ(post_recv(b.get(), 5, to.all()), 0);
  ASSERT_EQ(send(a.get(), 1, there.get(), b->qp_num), 0);
  auto wc = wait_for(cq.get());
  ASSERT_TRUE(completed(wc, 5));

  const Ah back(ibv_create_ah_from_wc(pd.get(), &*wc, reinterpret_cast<ibv_grh*>(to.data()), 1));
  ASSERT_TRUE(back);
  ASSERT_EQ(post_recv(a.get(), 6, to.all()), 0);
  ASSERT_EQ(send(b.get(), 2, back.get(), wc->src_qp), 0);
  EXPECT_TRUE(completed(poll_once(cq.get()), 6));
}

}  // namespace
}  // namespace weir::verbs_test
