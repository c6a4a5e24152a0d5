#include "tensor/address.hpp"

#include <gtest/gtest.h>

namespace weir::tensor {
namespace {

TEST(TensorAddress, says_host_and_port) {
  const Address plain = parse_address("rdma://host:7800").value();
  EXPECT_EQ(plain.host, "host");
  EXPECT_EQ(plain.port, 7800);
  EXPECT_EQ(parse_address("tls://host:1").value().transport, Transport::tls);
  const Address six = parse_address("rdma://[::1]:0").value();
  EXPECT_EQ(six.host, "::1");
}

TEST(TensorAddress, refuses_others) {
  for (const char* each : {"", "host:1", "http://h:1", "rdma://h", "rdma://h:", "rdma://:1", "rdma://h:65536",
                           "rdma://h:1x", "tcp://h:1?fallback=tcp", "tls://h:1?fallback=tcp", "none://h:1",
                           "tls//h:1", "rdma://h:1?fallback=udp", "rdma://h:1?x", "unix://h:1"}) {
    const auto refused = parse_address(each);
    ASSERT_FALSE(refused) << each;
    EXPECT_EQ(refused.error().code, Errc::bad_address);
  }
}

}  // namespace
}  // namespace weir::tensor
