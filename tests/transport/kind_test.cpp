// The names of the kinds of transport.
#include "transport/kind.hpp"

#include <gtest/gtest.h>

namespace weir::transport {
namespace {

TEST(TransportKind, is_found_by_the_name_that_is_shown_for_it) {
  for (const Kind kind : {Kind::tcp, Kind::unix_socket, Kind::tls, Kind::rdma, Kind::rdma_tls})
    EXPECT_EQ(kind_named(name_of(kind)), kind) << name_of(kind);
}

TEST(TransportKind, tls_over_rdma_is_known_by_its_other_names_too) {
  for (const char* name : {"tls+rdma", "rdma-tls", "weirs+rdma"})
    EXPECT_EQ(kind_named(name), Kind::rdma_tls) << name;
  EXPECT_EQ(name_of(Kind::rdma_tls), "rdma+tls");
}

TEST(TransportKind, of_no_name_is_none) {
  for (const char* name : {"", "TCP", "udp", "rdma+"}) EXPECT_FALSE(kind_named(name)) << name;
}

}  // namespace
}  // namespace weir::transport
