// Answering a datagram from what its completion and its GRH contain (ibv_create_ah_from_wc(3)).
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

std::uint16_t big_endian(const std::uint8_t* at) { return static_cast<std::uint16_t>(at[0] << 8 | at[1]); }

std::uint16_t ones_complement_sum(const std::uint8_t* header, std::size_t bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes; i += 2) sum += big_endian(header + i);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

// rdma-core tells IPv4 from IPv6 by that checksum. The length is of IP, UDP, BTH, DETH, payload with padding,
// ICRC.
TEST_F(AddressHandles, give_a_datagram_an_ip_header_whose_length_and_checksum_are_its_own) {
  std::vector<ibv_gid> gids;
  ibv_gid gid;
  for (int i = 0; ibv_query_gid(context.get(), 1, i, &gid) == 0; ++i) gids.push_back(gid);
  ASSERT_FALSE(gids.empty());
  for (std::size_t i = 0; i < gids.size(); ++i) {
    if (gids[i].global.interface_id == 0) continue;  // an empty place
    ibv_ah_attr attr{};
    attr.port_num = 1;
    attr.is_global = 1;
    attr.grh.dgid = gids[i];
    attr.grh.sgid_index = static_cast<std::uint8_t>(i);
    attr.grh.hop_limit = 64;
    const Ah there(ibv_create_ah(pd.get(), &attr));
    ASSERT_TRUE(there);
    ASSERT_EQ(post_recv(b.get(), 5, to.all()), 0);
    ASSERT_EQ(send(a.get(), 1, there.get(), b->qp_num), 0);
    ibv_wc wc = *wait_for(cq.get());
    if (wc.wr_id == 1) wc = *wait_for(cq.get());
    const std::size_t payload = (wc.byte_len - 40 + 3) / 4 * 4;
    const std::uint8_t* const grh = to.bytes().data();
    if (grh[0] >> 4 == 6) {
      EXPECT_EQ(big_endian(grh + 4), 8 + 12 + 8 + payload + 4);
    } else {
      EXPECT_EQ(big_endian(grh + 22), 20 + 8 + 12 + 8 + payload + 4);
      EXPECT_EQ(ones_complement_sum(grh + 20, 20), 0xffff);
    }
    while (poll_once(cq.get())) {
    }
  }
}

}  // namespace
}  // namespace weir::verbs_test
