// CONFIG SET bind: all listeners of those addresses move, or none of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kv/certificates.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

Settings tcp_and_tls_on(const std::string& addresses) {
  Settings settings = with_certificates(quiet_settings());
  settings.port = settings.tls_port = any_port;
  settings.bind = addresses;
  return settings;
}

TEST(Rebinding, config_set_bind_moves_every_port_of_these_addresses) {
  RunningServer server(tcp_and_tls_on("127.0.0.1"));
  EXPECT_EQ(server.connect().call({"CONFIG", "SET", "bind", "127.0.0.2"}), "+OK\r\n");
  EXPECT_THAT(
      server.run([](Server& s) { return s.listeners.where(); }),
      UnorderedElementsAre(StartsWith("tcp 127.0.0.2:"), StartsWith("tls 127.0.0.2:"), StartsWith("unix ")));
}

TEST(Rebinding, config_set_bind_to_an_address_that_is_not_there_leaves_every_port_where_it_is) {
  RunningServer server(tcp_and_tls_on("127.0.0.1"));
  EXPECT_THAT(server.connect().call({"CONFIG", "SET", "bind", "192.0.2.1"}),
              StartsWith("-ERR CONFIG SET failed"));
  EXPECT_THAT(
      server.run([](Server& s) { return s.listeners.where(); }),
      UnorderedElementsAre(StartsWith("tcp 127.0.0.1:"), StartsWith("tls 127.0.0.1:"), StartsWith("unix ")));
}

}  // namespace
}  // namespace weir::kv::testing
