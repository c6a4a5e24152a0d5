// Each status of the connection manager gives its cause and the next step.
#include "rdma/verbs/refusals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace weir::rdma {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Refusals, tell_an_address_that_tcp_reaches_from_one_that_nothing_reaches) {
  EXPECT_THAT(why_not_resolved("10.1.2.3:7471", -EHOSTUNREACH),
              AllOf(HasSubstr("10.1.2.3:7471 may be reached by TCP, but no RDMA device reaches it"),
                    HasSubstr("one network namespace")));
  EXPECT_THAT(why_not_resolved("10.1.2.3:7471", -ENETUNREACH),
              HasSubstr("no route from here, for TCP or RDMA"));
  EXPECT_THAT(why_not_resolved("10.1.2.3:7471", -ENODEV), HasSubstr("interface that has no RDMA device"));
  EXPECT_THAT(why_not_resolved("10.1.2.3:7471", -EIO), HasSubstr("error 5"));
}

TEST(Refusals, tell_a_port_where_nobody_listens_from_a_program_that_refuses) {
  EXPECT_THAT(why_refused("127.0.0.1:1", 8), AllOf(HasSubstr("nobody listens on that RDMA port"),
                                                   HasSubstr("check the port"), HasSubstr("one user")));
  EXPECT_THAT(why_refused("127.0.0.1:1", 28), HasSubstr("turned the connection away"));
  EXPECT_THAT(why_refused("127.0.0.1:1", 4), HasSubstr("try again"));
  EXPECT_THAT(why_refused("127.0.0.1:1", 99), HasSubstr("reason 99"));
}

TEST(Refusals, of_a_lost_connection_do_not_say_that_a_living_peer_is_gone) {
  EXPECT_THAT(why_lost(IBV_WC_RETRY_EXC_ERR, "retries"),
              AllOf(HasSubstr("did not answer in time"), HasSubstr("overloaded"), HasSubstr("(retries)")));
  EXPECT_THAT(why_lost(IBV_WC_RNR_RETRY_EXC_ERR, "RNR"), HasSubstr("was not ready to receive for too long"));
}

TEST(Refusals, of_an_event_channel_name_a_kernel_module_only_where_one_is_used) {
  EXPECT_THAT(why_no_events(ENODEV, false), HasSubstr("rdma_ucm"));
  EXPECT_THAT(why_no_events(ENODEV, true),
              AllOf(HasSubstr("software NIC did not start"), Not(HasSubstr("rdma_ucm"))));
  for (const bool software_nic : {false, true})
    EXPECT_THAT(why_no_events(EMFILE, software_nic),
                AllOf(HasSubstr("limit of open files"), Not(HasSubstr("rdma_ucm"))));
}

}  // namespace
}  // namespace weir::rdma
