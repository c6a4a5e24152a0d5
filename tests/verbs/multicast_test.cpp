// Multicast through the C ABI: which GIDs name groups, and a datagram to a group.
#include <arpa/inet.h>

#include <cerrno>
#include <cstdlib>

#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

ibv_gid gid_of(const char* ipv6) {
  ibv_gid gid;
  EXPECT_EQ(::inet_pton(AF_INET6, ipv6, gid.raw), 1);
  return gid;
}

class Multicast : public VerbsTest {
 protected:
  // No packet leaves this host.
  void SetUp() override {
    ::setenv("WEIR_WIRE", "0", 1);
    VerbsTest::SetUp();
  }
  void TearDown() override {
    VerbsTest::TearDown();
    ::unsetenv("WEIR_WIRE");
  }
  Cq cq = make_cq(), other_cq = make_cq();
};

TEST_F(Multicast, needs_a_group_and_a_datagram_queue_pair) {
  Qp ud = make_qp(cq.get(), {.type = IBV_QPT_UD}), rc = make_qp(cq.get());
  struct Row {
    const char* gid;
    bool group;
  };
  for (const Row& row : {Row{"ff0e::1", true}, Row{"ff02::2:3", true}, Row{"::ffff:224.0.0.9", true},
                         Row{"::ffff:239.255.255.255", true}, Row{"::ffff:192.168.0.1", false},
                         Row{"fe80::1", false}, Row{"::", false}}) {
    SCOPED_TRACE(row.gid);
    const ibv_gid gid = gid_of(row.gid);
    EXPECT_EQ(ibv_detach_mcast(ud.get(), &gid, 0), EINVAL) << "not attached";
    EXPECT_EQ(ibv_attach_mcast(ud.get(), &gid, 0), row.group ? 0 : EINVAL);
    EXPECT_EQ(ibv_attach_mcast(ud.get(), &gid, 0), row.group ? 0 : EINVAL) << "once more";
    EXPECT_EQ(ibv_detach_mcast(ud.get(), &gid, 0), row.group ? 0 : EINVAL);
    EXPECT_EQ(ibv_attach_mcast(rc.get(), &gid, 0), EINVAL);
  }
}

TEST_F(Multicast, a_datagram_to_a_group_has_its_address_in_the_grh) {
  for (const char* name : {"ff0e::77", "::ffff:239.1.2.3"}) {
    SCOPED_TRACE(name);
    Qp sender = make_qp(cq.get(), {.type = IBV_QPT_UD}),
       receiver = make_qp(other_cq.get(), {.type = IBV_QPT_UD});
    connect(sender.get(), receiver.get());
    const ibv_gid group = gid_of(name);
    ASSERT_EQ(ibv_attach_mcast(receiver.get(), &group, 0), 0);
    Buffer from(pd.get(), 32), to(pd.get(), 128);
    from.fill(5);
    ASSERT_EQ(post_recv(receiver.get(), 8, to.all()), 0);
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.port_num = 1;
    attr.grh.dgid = group;
    attr.grh.hop_limit = 1;
    Ah ah(ibv_create_ah(pd.get(), &attr));
    ASSERT_TRUE(ah);
    ibv_sge sge = from.all();
    ibv_send_wr wr = send_wr(1, sge);
    wr.wr.ud = {ah.get(), 0xffffff, 0x1111};
    ASSERT_EQ(post(sender.get(), wr), 0);
    EXPECT_TRUE(completed(wait_for(cq.get()), 1));
    const auto wc = wait_for(other_cq.get());
    ASSERT_TRUE(completed(wc, 8));
    EXPECT_EQ(wc->src_qp, sender->qp_num);
    EXPECT_EQ(std::memcmp(to.data() + 40, from.data(), 32), 0);
    const std::size_t address_bytes = group.raw[0] == 0xff ? 16 : 4;
    EXPECT_EQ(std::memcmp(to.data() + 40 - address_bytes, group.raw + 16 - address_bytes, address_bytes), 0);
  }
}

TEST_F(Multicast, is_what_the_device_says) {
  ibv_device_attr device;
  ASSERT_EQ(ibv_query_device(context.get(), &device), 0);
  EXPECT_GT(device.max_mcast_grp, 0);
  EXPECT_GT(device.max_mcast_qp_attach, 0);
  EXPECT_GT(device.max_total_mcast_qp_attach, 0);
}

}  // namespace
}  // namespace weir::verbs_test
