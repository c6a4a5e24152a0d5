// TLS over RDMA: it carries what plain RDMA does, for clients with valid certificates; and how clients end.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <deque>

#include "tests/kv/certificates.hpp"
#include "tests/kv/rdma_client.hpp"
#include "transport/handshake_places.hpp"

extern char** environ;

namespace weir::kv::testing {
namespace {

Settings rdma_tls_settings() {
  Settings settings = with_certificates(rdma_settings());
  settings.rdma_tls_port = any_port;
  return settings;
}

std::string ping(RunningServer& server, asio::ssl::context context) {
  RdmaClient client(port_of(server, "rdma+tls"));
  client.start_tls(std::move(context));
  return client.exactly("PING\r\n", 7);
}

class RdmaTlsClientCertificate : public ::testing::TestWithParam<ClientCertificateCase> {};

TEST_P(RdmaTlsClientCertificate, is_asked_for_as_tls_auth_clients_says) {
  Settings settings = rdma_tls_settings();
  settings.tls_auth_clients = GetParam().choice();
  RunningServer server(settings);
  if (GetParam().served) {
    EXPECT_EQ(ping(server, client_context(GetParam().shows)), "+PONG\r\n");
  } else {
    EXPECT_THROW(ping(server, client_context(GetParam().shows)), std::system_error);
    EXPECT_EQ(ping(server, client_context("client")), "+PONG\r\n") << "the next client is none the worse";
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, RdmaTlsClientCertificate, ::testing::ValuesIn(client_certificate_cases));

TEST(RdmaTls, client_that_does_not_trust_the_server_leaves_no_trace) {
  RunningServer server(rdma_tls_settings());
  EXPECT_THROW(ping(server, client_context("client", "other-ca")), std::system_error);
  await_clients(server, 0);
  EXPECT_EQ(ping(server, client_context("client")), "+PONG\r\n");
}

struct Rebinding {
  const char *rdma_bind, *changes;  // the settings
  friend void PrintTo(const Rebinding& c, std::ostream* out) {
    *out << c.changes << (*c.rdma_bind != '\0' ? " where rdma-bind is set" : "");
  }
};
class RdmaAddresses : public ::testing::TestWithParam<Rebinding> {};

TEST_P(RdmaAddresses, config_set_moves_every_port_of_these_addresses) {
  Settings settings = rdma_tls_settings();
  settings.bind = "127.0.0.1";
  settings.rdma_bind = GetParam().rdma_bind;
  RunningServer server(settings);
  EXPECT_EQ(server.connect().call({"CONFIG", "SET", GetParam().changes, "0.0.0.0"}), "+OK\r\n");
  std::size_t moved = 0;
  for (const std::string& where : server.run([](Server& s) { return s.listeners.where(); }))
    moved += where.starts_with("rdma 0.0.0.0:") || where.starts_with("rdma+tls 0.0.0.0:");
  EXPECT_EQ(moved, 2u);
}
INSTANTIATE_TEST_SUITE_P(Cases, RdmaAddresses,
                         ::testing::Values(Rebinding{"127.0.0.1", "rdma-bind"}, Rebinding{"", "rdma-bind"},
                                           Rebinding{"", "bind"}));

TEST(RdmaTls, config_set_renews_the_certificate_for_those_who_come) {
  RunningServer server(rdma_tls_settings());
  const std::vector<std::string> renewal{"CONFIG",        "SET",
                                         "tls-cert-file", certificates().certificate("stranger"),
                                         "tls-key-file",  certificates().key("stranger")};
  EXPECT_EQ(server.connect().call(renewal), "+OK\r\n");
  EXPECT_THROW(ping(server, client_context("client", "ca")), std::system_error);
  EXPECT_EQ(ping(server, client_context("client", "other-ca")), "+PONG\r\n");
}

TEST(RdmaTls, carries_large_values_both_ways_through_small_buffers) {
  Settings settings = rdma_tls_settings();
  settings.rdma_rx_size = 64 * 1024;
  RunningServer server(settings);
  RdmaClient client(port_of(server, "rdma+tls"));
  client.start_tls(client_context("client"));
  std::string value(1 << 20, 'x');
  for (std::size_t i = 0; i < value.size(); i += 4099) value[i] = static_cast<char>(i);
  for (int round = 0; round < 4; ++round) {
    EXPECT_EQ(client.exactly(encode({"SET", "k", value}), 5), "+OK\r\n");
    EXPECT_EQ(client.exactly(encode({"GET", "k"}), value.size() + 12), "$1048576\r\n" + value + "\r\n");
  }
  EXPECT_EQ(server.connect().call({"STRLEN", "k"}), ":1048576\r\n");
}

TEST(RdmaTls, answers_a_pipeline_in_order) {
  RunningServer server(rdma_tls_settings());
  RdmaClient client(port_of(server, "rdma+tls"));
  client.start_tls(client_context("client"));
  std::string requests;
  std::string replies;
  for (int i = 1; i <= 20000; ++i) {
    requests += "INCR n\r\n";
    replies += ':' + std::to_string(i) + "\r\n";
  }
  EXPECT_EQ(client.exactly(requests, replies.size()), replies);
}

TEST(RdmaTls, config_set_rdma_tls_port_opens_and_closes_it) {
  Settings settings = rdma_tls_settings();
  settings.rdma_tls_port = 0;
  RunningServer server(settings);
  WireClient manager = server.connect();
  EXPECT_EQ(manager.call({"CONFIG", "SET", "rdma-tls-port", "-1"}), "+OK\r\n");
  EXPECT_EQ(ping(server, client_context("client")), "+PONG\r\n");
  EXPECT_EQ(manager.call({"CONFIG", "SET", "rdma-tls-port", "0"}), "+OK\r\n");
  EXPECT_EQ(port_of(server, "rdma+tls"), 0);
}

TEST(RdmaTls, handshake_has_a_time_limit) {
  RunningServer server(rdma_tls_settings());
  server.stop_clock();
  RdmaClient established(port_of(server, "rdma+tls"));
  established.start_tls(client_context("client"));
  EXPECT_EQ(established.exactly("PING\r\n", 7), "+PONG\r\n");
  RdmaClient silent(port_of(server, "rdma+tls"));
  await_clients(server, 2);
  pass_ms(server, 5'000);
  EXPECT_EQ(server.run([](Server& s) { return s.clients.size(); }), 2u) << "it has ten seconds";
  pass_ms(server, 6'000);
  EXPECT_TRUE(silent.ended());
  await_clients(server, 1);
  EXPECT_EQ(established.exactly("PING\r\n", 7), "+PONG\r\n") << "the limit is the handshake's only";
}

// Silent connections to the TLS port, all driven by one thread.
class SilentClients {
 public:
  explicit SilentClients(std::uint16_t port) : engine_(open_engine(io_)), port_(port) {}
  void come(std::size_t count) {
    const rdma::Endpoint peer(asio::ip::address_v4::loopback(), port_);
    for (std::size_t i = 0; i < count; ++i) {
      streams_.emplace_back(engine_);
      rdma::async_connect(streams_.back(), peer, rdma::StreamSettings(), [this](std::error_code error) {
        if (!error) ++connected_;
      });
    }
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (connected_ < streams_.size() && std::chrono::steady_clock::now() < limit)
      io_.run_one_for(std::chrono::milliseconds(100));
    EXPECT_EQ(connected_, streams_.size());
  }

 private:
  asio::io_context io_{1};
  rdma::Engine& engine_;
  std::uint16_t port_;
  std::deque<rdma::Stream> streams_;
  std::size_t connected_ = 0;
};

TEST(RdmaTls, silent_handshakes_leave_first) {
  constexpr std::size_t most = transport::HandshakePlaces::most;
  RunningServer server(rdma_tls_settings());
  server.stop_clock();
  SilentClients silent(port_of(server, "rdma+tls"));
  silent.come(most + 20);
  WireClient other = server.connect();
  EXPECT_EQ(other.call({"PING"}), "+PONG\r\n") << "a client without TLS is not held up";
  EXPECT_EQ(ping(server, client_context("client")), "+PONG\r\n");
  EXPECT_LE(server.run([](Server& s) { return s.clients.size(); }), most + 2);
}

TEST(RdmaTls, client_that_speaks_plain_text_is_closed) {
  RunningServer server(rdma_tls_settings());
  RdmaClient plain(port_of(server, "rdma+tls"));
  EXPECT_THROW(plain.exactly(encode({"PING"}), 7), std::system_error);
  await_clients(server, 0);
}

// A process that loads the server over RDMA with TLS until it is killed.
class Load {
 public:
  explicit Load(std::uint16_t port) {
    std::vector<std::string> words{WEIR_BENCHMARK,
                                   "--rdma",
                                   "--rdma-provider",
                                   "weir",
                                   "--tls",
                                   "--insecure",
                                   "--cert",
                                   certificates().certificate("client"),
                                   "--key",
                                   certificates().key("client"),
                                   "-p",
                                   std::to_string(port),
                                   "-c",
                                   "4",
                                   "-P",
                                   "16",
                                   "-d",
                                   "20000",
                                   "-n",
                                   "1000000000",
                                   "-t",
                                   "set,get"};
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t quiet;
    ::posix_spawn_file_actions_init(&quiet);
    ::posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    const int failed = ::posix_spawn(&pid_, WEIR_BENCHMARK, &quiet, nullptr, pointers.data(), environ);
    ::posix_spawn_file_actions_destroy(&quiet);
    if (failed != 0) throw std::runtime_error("cannot run " WEIR_BENCHMARK);
  }
  ~Load() { kill(); }
  void kill() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  bool runs() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }

 private:
  pid_t pid_ = 0;
};

TEST(RdmaTls, client_killed_in_the_middle_of_its_requests_harms_nobody) {
  RunningServer server(rdma_tls_settings());
  RdmaClient witness(port_of(server, "rdma+tls"));
  witness.start_tls(client_context("client"));
  for (int round = 0; round < 3; ++round) {
    Load load(port_of(server, "rdma+tls"));
    const std::uint64_t before = server.run([](Server& s) { return s.stats.commands; });
    while (server.run([](Server& s) { return s.stats.commands; }) < before + 1000) {
      ASSERT_TRUE(load.runs());
      std::this_thread::yield();
    }
    load.kill();
    EXPECT_EQ(witness.exactly("PING\r\n", 7), "+PONG\r\n");
    await_clients(server, 1);
  }
  EXPECT_EQ(ping(server, client_context("client")), "+PONG\r\n");
}

}  // namespace
}  // namespace weir::kv::testing
