// The server over RDMA: it serves like TCP for all sizes, and its listeners change at run time.
#include <gtest/gtest.h>

#include "tests/kv/rdma_client.hpp"

namespace weir::kv::testing {
namespace {

TEST(Rdma, serves_what_tcp_serves) {
  RunningServer server(rdma_settings());
  RdmaClient client(port_of(server, "rdma"));
  EXPECT_EQ(client.exactly(encode({"SET", "k", "v"}), 5), "+OK\r\n");
  EXPECT_EQ(WireClient::tcp(port_of(server, "tcp")).call({"GET", "k"}), "$1\r\nv\r\n");
  const std::string info = server.connect().call({"INFO", "rdma"});
  EXPECT_NE(info.find("rdma_connected_clients:1"), std::string::npos) << info;
  EXPECT_NE(info.find("rdma_provider:weir"), std::string::npos);
  EXPECT_NE(server.log().find("RDMA: "), std::string::npos) << "says at start what it took";
}

TEST(Rdma, carries_values_larger_than_its_buffers_and_pipelines) {
  Settings settings = rdma_settings();
  settings.rdma_rx_size = 64 * 1024;
  RunningServer server(settings);
  RdmaClient client(port_of(server, "rdma"));
  std::string value(3 << 20, 'x');
  for (std::size_t i = 0; i < value.size(); i += 4099) value[i] = static_cast<char>(i);
  EXPECT_EQ(client.exactly(encode({"SET", "k", value}), 5), "+OK\r\n");
  EXPECT_EQ(client.exactly(encode({"GET", "k"}), value.size() + 12), "$3145728\r\n" + value + "\r\n");
  std::string requests;
  std::string replies;
  for (int i = 0; i < 20000; ++i) {
    requests += "PING\r\n";
    replies += "+PONG\r\n";
  }
  EXPECT_EQ(client.exactly(requests, replies.size()), replies);
}

TEST(Rdma, port_can_be_changed_while_it_runs) {
  Settings settings = rdma_settings();
  settings.rdma_port = 0;
  RunningServer server(settings);
  WireClient manager = server.connect();
  EXPECT_EQ(manager.call({"CONFIG", "SET", "rdma-port", "-1"}), "+OK\r\n");
  const std::uint16_t first = port_of(server, "rdma");
  ASSERT_NE(first, 0);
  RdmaClient client(first);
  // A client that the server has not accepted yet is lost with its listener, like one in TCP's backlog.
  EXPECT_EQ(client.exactly("PING\r\n", 7), "+PONG\r\n");
  EXPECT_EQ(manager.call({"CONFIG", "SET", "rdma-port", "0"}), "+OK\r\n");
  EXPECT_EQ(port_of(server, "rdma"), 0);
  EXPECT_EQ(client.exactly("PING\r\n", 7), "+PONG\r\n") << "who is connected stays";
  EXPECT_THROW(RdmaClient{first}, std::runtime_error);
}

// 192.0.2.1 is no address of any host (RFC 5737).
TEST(Rdma, that_cannot_be_opened_ends_the_start_only_if_required) {
  Settings settings = rdma_settings();
  settings.rdma_bind = "192.0.2.1";
  EXPECT_THROW(RunningServer{settings}, std::runtime_error);
  settings.rdma_required = false;
  RunningServer server(settings);
  EXPECT_EQ(port_of(server, "rdma"), 0);
  EXPECT_EQ(server.connect().call({"PING"}), "+PONG\r\n");
  EXPECT_NE(server.log().find("rdma-port is not served (rdma-required no)"), std::string::npos)
      << server.log();
}

TEST(Rdma, client_that_goes_away_is_forgotten) {
  RunningServer server(rdma_settings());
  {
    RdmaClient client(port_of(server, "rdma"));
  }
  while (server.run([](Server& s) { return s.clients.size(); }) != 0) std::this_thread::yield();
  RdmaClient next(port_of(server, "rdma"));
  EXPECT_EQ(next.exactly("PING\r\n", 7), "+PONG\r\n");
}

}  // namespace
}  // namespace weir::kv::testing
