// Raw packet queue pairs and flows through the C ABI: one frame for each kind of
// specification, and what is refused.
#include <cerrno>

#include "flows.hpp"
#include "tests/rnic/frames.hpp"

namespace weir::verbs_test {
namespace {

using rnic::test::frame;
using rnic::test::FrameShape;

class Flows : public VerbsTest {
 protected:
  Qp raw(ibv_cq* queue) {
    Qp qp = make_qp(queue, {.type = IBV_QPT_RAW_PACKET});
    EXPECT_EQ(bring_up_raw(qp.get()), 0);
    return qp;
  }
  Flow flow(ibv_qp* qp, FlowAttributes attributes) { return Flow(ibv_create_flow(qp, attributes.get())); }
  int refused(ibv_qp* qp, FlowAttributes attributes) {
    errno = 0;
    EXPECT_EQ(ibv_create_flow(qp, attributes.get()), nullptr);
    return errno;
  }
  void send(ibv_qp* qp, const FrameShape& shape) {
    const std::vector<std::byte> bytes = frame(shape);
    std::memcpy(from.data(), bytes.data(), bytes.size());
    ibv_sge sge = from.sge(0, bytes.size());
    ASSERT_EQ(post(qp, send_wr(1, sge)), 0);
    ASSERT_TRUE(completed(wait_for(cq.get()), 1));
  }

  Cq cq = make_cq(), other_cq = make_cq();
  Buffer from{pd.get(), 4096}, to{pd.get(), 4096};
};

TEST_F(Flows, lead_the_frames_that_they_specify_to_their_queue_pair) {
  struct Row {
    const char* name;
    FlowAttributes flow;
    FrameShape in, out;
  };
  const Row rows[] = {
      {"everything", FlowAttributes(), {}, {.ip = 6}},
      {"ethernet", FlowAttributes(ethernet(0x20)), {}, {.destination = 0x21}},
      {"ipv4", FlowAttributes(ethernet(0x20), ipv4(3)), {.host = 3}, {.host = 4}},
      {"ipv4 of an ipv6 frame",
       FlowAttributes(make_spec<ibv_flow_spec_ipv4>(IBV_FLOW_SPEC_IPV4)),
       {},
       {.ip = 6}},
      {"ipv6", FlowAttributes(ipv6(3)), {.ip = 6, .host = 3}, {.ip = 6, .host = 4}},
      {"udp", FlowAttributes(ipv4(1), ports(IBV_FLOW_SPEC_UDP, 2000)), {}, {.destination_port = 2001}},
      {"udp of a tcp frame", FlowAttributes(ports(IBV_FLOW_SPEC_UDP, 2000)), {}, {.protocol = 6}},
      {"tcp", FlowAttributes(ipv6(1), ports(IBV_FLOW_SPEC_TCP, 2000)), {.ip = 6, .protocol = 6}, {.ip = 6}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Qp sender = raw(cq.get()), receiver = raw(other_cq.get());
    const Flow led = flow(receiver.get(), row.flow);
    ASSERT_TRUE(led);
    ASSERT_EQ(post_recv(receiver.get(), 8, to.all()), 0);
    if (std::string(row.name) != "everything") send(sender.get(), row.out);
    EXPECT_FALSE(poll_once(other_cq.get()));
    send(sender.get(), row.in);
    const auto wc = wait_for(other_cq.get());
    ASSERT_TRUE(completed(wc, 8));
    const std::vector<std::byte> bytes = frame(row.in);
    EXPECT_EQ(wc->byte_len, bytes.size());
    EXPECT_EQ(wc->wc_flags, 0u);
    EXPECT_EQ(std::memcmp(to.data(), bytes.data(), bytes.size()), 0);
  }
}

TEST_F(Flows, keep_their_queue_pair_from_being_destroyed) {
  Qp qp = raw(cq.get());
  Flow led = flow(qp.get(), FlowAttributes(ethernet(1)));
  ASSERT_TRUE(led);
  EXPECT_EQ(ibv_destroy_qp(qp.get()), EBUSY);
  led.reset();
}

TEST_F(Flows, refuse_what_is_not_there) {
  Qp qp = raw(cq.get()), datagrams = make_qp(cq.get(), {.type = IBV_QPT_UD});
  EXPECT_EQ(refused(datagrams.get(), FlowAttributes(ethernet(1))), EINVAL)
      << "frames come to raw packet queue pairs";
  FlowAttributes elsewhere;
  elsewhere->port = 2;
  EXPECT_EQ(refused(qp.get(), elsewhere), EINVAL);
  ibv_flow_spec_eth cut = ethernet(1);
  cut.size -= 2;
  EXPECT_EQ(refused(qp.get(), FlowAttributes(cut)), EINVAL);
  for (const ibv_flow_attr_type type :
       {IBV_FLOW_ATTR_ALL_DEFAULT, IBV_FLOW_ATTR_MC_DEFAULT, IBV_FLOW_ATTR_SNIFFER}) {
    FlowAttributes attributes;
    attributes->type = type;
    EXPECT_EQ(refused(qp.get(), attributes), EOPNOTSUPP) << type;
  }
  FlowAttributes egress;
  egress->flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
  EXPECT_EQ(refused(qp.get(), egress), EOPNOTSUPP);
  EXPECT_EQ(refused(qp.get(), FlowAttributes(make_spec<ibv_flow_spec_tunnel>(IBV_FLOW_SPEC_VXLAN_TUNNEL))),
            EOPNOTSUPP);
  auto inner = ethernet(1);
  inner.type = static_cast<ibv_flow_spec_type>(IBV_FLOW_SPEC_ETH | IBV_FLOW_SPEC_INNER);
  EXPECT_EQ(refused(qp.get(), FlowAttributes(inner)), EOPNOTSUPP);
  auto fragments = ipv4(1);
  fragments.mask.flags = 1;
  EXPECT_EQ(refused(qp.get(), FlowAttributes(fragments)), EOPNOTSUPP);
}

}  // namespace
}  // namespace weir::verbs_test
