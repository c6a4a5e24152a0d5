// Each status of the connection manager gives its cause and the next step.
#include "rdma/verbs/refusals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace weir::rdma {
namespace {

using testing::AllOf;
using testing::HasSubstr;

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

}  // namespace
}  // namespace weir::rdma
