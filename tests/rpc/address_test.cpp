#include "rpc/address.hpp"

#include <gtest/gtest.h>

namespace weir::rpc {
namespace {

TEST(Address, comes_back_as_it_was_written) {
  for (const char* text : {"tcp://127.0.0.1:9000", "tls://example.org:1", "rdma://10.0.0.1:65535",
                           "rdma+tls://h:0", "tcp://[::1]:80", "unix:///run/x.sock",
                           "rdma://h:1?fallback=tcp", "rdma+tls://[::1]:1?fallback=tls"}) {
    const auto address = parse_address(text);
    ASSERT_TRUE(address) << text << ": " << address.error().what;
    EXPECT_EQ(address->text(), text);
  }
}

TEST(Address, takes_the_other_names_of_tls_over_rdma) {
  for (const char* text : {"tls+rdma://h:1", "rdma-tls://h:1", "weirs+rdma://h:1"}) {
    const auto address = parse_address(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->scheme, Scheme::rdma_tls) << text;
    EXPECT_EQ(address->text(), "rdma+tls://h:1") << text;
  }
}

TEST(Address, what_is_none_is_refused_with_a_reason) {
  for (const char* text :
       {"", "tcp", "tcp:/", "tcp://", "tcp://host", "tcp://:80", "tcp://host:", "tcp://host:65536",
        "tcp://host:-1", "tcp://host:8x", "tcp://::1:80", "tcp://[]:80", "ftp://host:80", "unix://",
        "tcp://h:1?fallback=tcp", "rdma://h:1?fallback=tls",
        "rdma://h:1?fallback=", "rdma+tls://h:1?fallback=tcp"}) {
    const auto address = parse_address(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code, Errc::bad_address);
    EXPECT_NE(address.error().what.find("tcp://HOST:PORT"), std::string::npos)
        << "no next step: " << address.error().what;
  }
  EXPECT_FALSE(parse_address("unix://" + std::string(108, 'x'))) << "longer than sun_path";
}

}  // namespace
}  // namespace weir::rpc
