// LIDs, for programs that are given no GID: they stand for the last two bytes of an IPv4 address.
#include <cerrno>
#include <cstdlib>

#include "verbs_test.hpp"

namespace weir::verbs_test {
namespace {

class Lid : public VerbsTest {
 protected:
  // Read once by the library, so before the device is opened. No interface has these addresses (RFC 5737).
  static void SetUpTestSuite() {
    ::setenv("WEIR_GIDS", "fd00::7,192.0.2.77,198.51.100.9", 1);
    VerbsTest::SetUpTestSuite();
  }

  std::uint16_t ports() {
    ibv_port_attr port{};
    EXPECT_EQ(ibv_query_port(context.get(), 1, &port), 0);
    return port.lid;
  }

  // The errno of a connection to that LID, without a GRH.
  int connect(std::uint16_t lid) {
    const Cq cq = make_cq();
    const Qp qp = make_qp(cq.get());
    EXPECT_EQ(modify(qp.get(), to_init(IBV_QPT_RC)), 0);
    Step step = to_rtr(IBV_QPT_RC, qp->qp_num, {});
    step.attr.ah_attr.is_global = 0;
    step.attr.ah_attr.grh = {};
    step.attr.ah_attr.dlid = lid;
    return modify(qp.get(), step);
  }
};

TEST_F(Lid, of_the_port_is_the_end_of_the_first_ipv4_address) { EXPECT_EQ(ports(), 2 << 8 | 77); }

TEST_F(Lid, of_the_port_means_this_host) { EXPECT_EQ(connect(ports()), 0); }

TEST_F(Lid, zero_means_this_host) { EXPECT_EQ(connect(0), 0); }

// To a host, not to this one: packets cannot leave from an address that no interface has.
TEST_F(Lid, of_another_host_leads_to_its_address) { EXPECT_EQ(connect(2 << 8 | 78), EADDRNOTAVAIL); }

TEST_F(Lid, is_kept_as_the_program_gave_it) {
  const Cq cq = make_cq();
  const Qp qp = make_qp(cq.get());
  ASSERT_EQ(modify(qp.get(), to_init(IBV_QPT_RC)), 0);
  Step step = to_rtr(IBV_QPT_RC, qp->qp_num, {});
  step.attr.ah_attr.is_global = 0;
  step.attr.ah_attr.dlid = ports();
  ASSERT_EQ(modify(qp.get(), step), 0);
  ibv_qp_attr attr{};
  ibv_qp_init_attr ignored{};
  ASSERT_EQ(ibv_query_qp(qp.get(), &attr, IBV_QP_AV, &ignored), 0);
  EXPECT_EQ(attr.ah_attr.is_global, 0);
  EXPECT_EQ(attr.ah_attr.dlid, ports());
}

}  // namespace
}  // namespace weir::verbs_test
