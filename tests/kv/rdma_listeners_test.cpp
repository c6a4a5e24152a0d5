// The server over RDMA, on Weir's software NIC as this build made it: plain, with TLS inside, and changed at
// run time.
#include <gtest/gtest.h>

#include <asio/read.hpp>
#include <asio/ssl.hpp>
#include <asio/write.hpp>

#include "kv/server/server.hpp"
#include "rdma/engine.hpp"
#include "rdma/provider.hpp"
#include "rdma/stream.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

Settings rdma_settings() {
  Settings settings = quiet_settings();
  settings.bind = "127.0.0.1";
  settings.port = any_port;
  settings.rdma_port = any_port;
  settings.rdma_provider = 1;
  return settings;
}

// A blocking client: runs its own io_context until what it waits for has happened.
class RdmaClient {
 public:
  explicit RdmaClient(std::uint16_t port) : stream_(open_engine(io_)) {
    const rdma::Endpoint peer(asio::ip::address_v4::loopback(), port);
    std::error_code failed = asio::error::would_block;
    const rdma::StreamSettings settings;
    rdma::async_connect(stream_, peer, settings, [&](std::error_code error) { failed = error; });
    until([&] { return failed != asio::error::would_block; });
    if (failed) throw std::runtime_error("connect: " + stream_.error().what);
  }

  std::string exactly(const std::string& request, std::size_t size) {
    std::string reply(size, 0);
    bool sent = false;
    bool received = false;
    std::error_code failed;
    auto done = [&](bool& flag) {
      return [&](std::error_code error, std::size_t) {
        flag = true;
        if (error) failed = error;
      };
    };
    asio::async_write(stream_, asio::buffer(request), done(sent));
    asio::async_read(stream_, asio::buffer(reply), done(received));
    until([&] { return (sent && received) || failed; });
    if (failed) throw std::system_error(failed);
    return reply;
  }
  void handshake(asio::ssl::context& context) {
    asio::ssl::stream<rdma::Stream&> tls(stream_, context);
    bool over = false;
    std::error_code failed;
    tls.async_handshake(asio::ssl::stream_base::client, [&](std::error_code error) {
      over = true;
      failed = error;
    });
    until([&] { return over; });
    if (failed) throw std::system_error(failed);
    std::string reply(7, 0);
    over = false;
    asio::async_write(tls, asio::buffer(std::string_view("PING\r\n")), [](std::error_code, std::size_t) {});
    asio::async_read(tls, asio::buffer(reply), [&](std::error_code error, std::size_t) {
      over = true;
      failed = error;
    });
    until([&] { return over; });
    EXPECT_EQ(reply, "+PONG\r\n") << failed.message();
  }

 private:
  static rdma::Engine& open_engine(asio::io_context& io) {
    rdma::ProviderOptions options;
    options.choice = rdma::ProviderChoice::weir;
    auto provider = rdma::load_provider(options);
    if (!provider) throw std::runtime_error(provider.error().what);
    auto engine = rdma::Engine::open(io, *provider);
    if (!engine) throw std::runtime_error(engine.error().what);
    return **engine;
  }
  template <class Done>
  void until(Done done) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      io_.run_one_for(std::chrono::seconds(1));
      if (std::chrono::steady_clock::now() > limit) throw std::runtime_error("nothing happened for 20 s");
    }
  }

  asio::io_context io_{1};
  rdma::Stream stream_;
};

std::uint16_t port_of(RunningServer& server, const char* kind) {
  return server.run([kind](Server& s) { return s.port(kind); });
}

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
  EXPECT_EQ(manager.call({"CONFIG", "SET", "rdma-port", "0"}), "+OK\r\n");
  EXPECT_EQ(port_of(server, "rdma"), 0);
  EXPECT_EQ(client.exactly("PING\r\n", 7), "+PONG\r\n") << "who is connected stays";
  EXPECT_THROW(RdmaClient{first}, std::runtime_error);
}

TEST(Rdma, client_that_goes_away_is_forgotten) {
  RunningServer server(rdma_settings());
  {
    RdmaClient client(port_of(server, "rdma"));
  }
  while (server.run([](Server& s) { return s.clients.size(); }) != 0) {
  }
  RdmaClient next(port_of(server, "rdma"));
  EXPECT_EQ(next.exactly("PING\r\n", 7), "+PONG\r\n");
}

TEST(Rdma, carries_tls) {
  const ScratchFolder folder;
  const std::string command =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "
      "/CN=localhost -days 2 -keyout " +
      folder.file("key") + " -out " + folder.file("crt") + " >/dev/null 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0);
  Settings settings = rdma_settings();
  settings.rdma_tls_port = any_port;
  settings.tls_auth_clients = 0;
  settings.tls_cert_file = folder.file("crt");
  settings.tls_key_file = folder.file("key");
  RunningServer server(settings);
  asio::ssl::context context(asio::ssl::context::tls_client);
  context.load_verify_file(folder.file("crt"));
  context.set_verify_mode(asio::ssl::verify_peer);
  RdmaClient client(port_of(server, "rdma-tls"));
  client.handshake(context);
}

}  // namespace
}  // namespace weir::kv::testing
