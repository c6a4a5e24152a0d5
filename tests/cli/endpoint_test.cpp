// URIs and options that name servers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/client/server_options.hpp"

namespace weir::client {
namespace {

struct Case {
  std::string uri;
  Transport transport;
  std::string host;
  std::uint16_t port;
  std::string user;
  std::string password;
  int database;
};

const Case sound[] = {
    {"redis://", Transport::tcp, "127.0.0.1", 6379, "", "", 0},
    {"redis://example", Transport::tcp, "example", 6379, "", "", 0},
    {"redis://example:7000/5", Transport::tcp, "example", 7000, "", "", 5},
    {"redis://secret@example/", Transport::tcp, "example", 6379, "", "secret", 0},
    {"redis://joe:p%40ss%3a@[::1]:7000/2", Transport::tcp, "::1", 7000, "joe", "p@ss:", 2},
    {"rediss://example", Transport::tls, "example", 6379, "", "", 0},
    {"valkey://:pw@h", Transport::tcp, "h", 6379, "", "pw", 0},
    {"weir+rdma://10.0.0.1:6380", Transport::rdma, "10.0.0.1", 6380, "", "", 0},
    {"rdma://h", Transport::rdma, "h", 6379, "", "", 0},
    {"rdma+tls://h", Transport::rdma_tls, "h", 6379, "", "", 0},
    {"weirs+rdma://h", Transport::rdma_tls, "h", 6379, "", "", 0},
    {"tls+rdma://h", Transport::rdma_tls, "h", 6379, "", "", 0},
    {"rdma-tls://h", Transport::rdma_tls, "h", 6379, "", "", 0},
};

const std::string broken[] = {"example:7000",    "ftp://example",  "redis://h:port",
                              "redis://h:70000", "redis://h/db",   "redis://a%4:b@h",
                              "redis://[::1",    "redis://[::1]x", "unix://"};

TEST(Uri, tells_transport_host_port_login_and_database) {
  for (const auto& expected : sound) {
    const auto uri = parse_uri(expected.uri);
    ASSERT_TRUE(uri) << expected.uri;
    EXPECT_EQ(uri->endpoint.transport, expected.transport) << expected.uri;
    EXPECT_EQ(uri->endpoint.host, expected.host) << expected.uri;
    EXPECT_EQ(uri->endpoint.port, expected.port) << expected.uri;
    EXPECT_EQ(uri->user, expected.user) << expected.uri;
    EXPECT_EQ(uri->password, expected.password) << expected.uri;
    EXPECT_EQ(uri->database, expected.database) << expected.uri;
  }
  EXPECT_EQ(parse_uri("unix:///run/s.sock")->endpoint.path, "/run/s.sock");
}

TEST(Uri, that_is_malformed_is_refused_with_a_hint) {
  for (const auto& text : broken) {
    const auto uri = parse_uri(text);
    ASSERT_FALSE(uri) << text;
    EXPECT_THAT(uri.error().what, testing::HasSubstr("redis://")) << text;
  }
}

Result<ServerOptions> options_from(const std::vector<std::string>& arguments) {
  ServerOptions options;
  ArgumentReader reader(arguments);
  while (!reader.at_end()) {
    auto taken = take_server_option(reader, options);
    if (!taken) return std::unexpected(taken.error());
    if (!*taken) return fail(ErrorKind::usage, "unknown");
  }
  if (auto checked = check_server_options(options); !checked) return std::unexpected(checked.error());
  return options;
}

TEST(ServerOptions, pick_the_transport) {
  const std::pair<std::vector<std::string>, Transport> cases[] = {
      {{}, Transport::tcp},
      {{"--tls"}, Transport::tls},
      {{"--rdma"}, Transport::rdma},
      {{"--rdma", "--tls"}, Transport::rdma_tls},
      {{"-s", "/tmp/s"}, Transport::unix_socket},
      {{"-u", "weirs+rdma://h"}, Transport::rdma_tls},
  };
  for (const auto& [arguments, transport] : cases)
    EXPECT_EQ(options_from(arguments)->endpoint().transport, transport) << testing::PrintToString(arguments);
}

TEST(ServerOptions, refuse_values_that_are_missing_or_out_of_range) {
  const std::vector<std::string> cases[] = {{"-p"},
                                            {"-p", "0"},
                                            {"-p", "65536"},
                                            {"-p", "80x"},
                                            {"-u", "nonsense"},
                                            {"--rdma-provider", "foo"},
                                            {"--rdma-rx-size", "65535"},
                                            {"--rdma-rx-size", "16777217"}};
  for (const auto& arguments : cases)
    EXPECT_FALSE(options_from(arguments)) << testing::PrintToString(arguments);
}

TEST(ServerOptions, take_the_size_of_rdma_receive_buffers) {
  EXPECT_EQ(options_from({"--rdma"})->endpoint().rdma.rx_bytes, 1048576u);
  EXPECT_EQ(options_from({"--rdma-rx-size", "65536"})->endpoint().rdma.rx_bytes, 65536u);
}

TEST(ServerOptions, refuse_rdma_over_a_unix_socket) {
  const std::vector<std::string> cases[] = {
      {"--rdma", "-s", "/tmp/s"}, {"-s", "/tmp/s", "--rdma", "--tls"}, {"-u", "unix:///tmp/s", "--rdma"}};
  for (const auto& arguments : cases) {
    const auto options = options_from(arguments);
    ASSERT_FALSE(options) << testing::PrintToString(arguments);
    EXPECT_EQ(options.error().kind, ErrorKind::usage);
  }
}

TEST(ServerOptions, take_from_the_environment_only_what_was_not_said) {
  auto options = *options_from({"-a", "said", "--rdma-provider", "system"});
  options.take_environment({"unsaid", "weir", "/lib"});
  EXPECT_EQ(options.login.password, "said");
  EXPECT_EQ(options.rdma_settings.provider, "system");
  EXPECT_EQ(options.rdma_settings.library_path, "/lib");
  ServerOptions silent;
  silent.take_environment({"unsaid", "weir", nullptr});
  EXPECT_EQ(silent.login.password, "unsaid");
  EXPECT_EQ(silent.rdma_settings.provider, "weir");
}

TEST(AddressOf, puts_brackets_around_ipv6) {
  Endpoint endpoint;
  EXPECT_EQ(address_of(endpoint), "127.0.0.1:6379");
  endpoint.host = "::1";
  EXPECT_EQ(address_of(endpoint), "[::1]:6379");
}

}  // namespace
}  // namespace weir::client
