#include "transport/host_port.hpp"

#include <gtest/gtest.h>

namespace weir::transport {
namespace {

TEST(HostPortText, is_read_as_users_write_it) {
  struct Row {
    const char* text;
    const char* host;
    std::optional<std::uint16_t> port;
  };
  constexpr Row rows[] = {
      {"host:80", "host", 80},       {"10.0.0.1:0", "10.0.0.1", 0},
      {"[::1]:65535", "::1", 65535}, {"host", "host", {}},
      {"host:", "host", {}},         {"[fe80::1%eth0]", "fe80::1%eth0", {}},
      {":6379", "", 6379},           {"", "", {}},
  };
  for (const Row& row : rows) {
    const auto read = parse_host_port(row.text);
    ASSERT_TRUE(read) << row.text;
    EXPECT_EQ(read->host, row.host) << row.text;
    EXPECT_EQ(read->port, row.port) << row.text;
  }
}

TEST(HostPortText, of_another_form_is_refused) {
  for (const char* text : {"::1:80", "::1", "[::1", "[]:80", "[::1]80", "[::1]x:80", "host:65536", "host:-1",
                           "host:8x", "host:+1", "host: 80"})
    EXPECT_FALSE(parse_host_port(text)) << text;
}

TEST(HostPortText, is_shown_as_it_is_read) {
  for (const char* text : {"host:80", "[::1]:6379", "10.0.0.1:0"}) {
    const auto read = parse_host_port(text);
    ASSERT_TRUE(read && read->port) << text;
    EXPECT_EQ(host_port_text(read->host, *read->port), text);
  }
}

}  // namespace
}  // namespace weir::transport
