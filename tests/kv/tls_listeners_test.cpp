// TLS: which clients are admitted, certificates that change at run time, and handshakes that do not end.
#include <gtest/gtest.h>

#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/read_until.hpp>
#include <asio/ssl.hpp>
#include <asio/write.hpp>
#include <deque>
#include <filesystem>
#include <memory>
#include <vector>

#include "tests/kv/certificates.hpp"
#include "tests/kv/running_server.hpp"
#include "transport/handshake_places.hpp"

namespace weir::kv::testing {
namespace {

Settings tls_settings() {
  Settings settings = with_certificates(quiet_settings());
  settings.tls_port = any_port;
  return settings;
}

std::uint16_t tls_port(RunningServer& server) {
  return server.run([](Server& s) { return s.port("tls"); });
}

class TlsClient {
 public:
  TlsClient(std::uint16_t port, asio::ssl::context context)
      : context_(std::move(context)), stream_(io_, context_) {
    stream_.lowest_layer().connect({asio::ip::address_v4::loopback(), port});
    stream_.handshake(asio::ssl::stream_base::client);
  }
  // For one-line replies.
  std::string line(const std::string& request) {
    asio::write(stream_, asio::buffer(request));
    std::string text;
    asio::read_until(stream_, asio::dynamic_buffer(text), "\r\n");
    return text;
  }
  std::string exactly(const std::string& request, std::size_t size) {
    asio::write(stream_, asio::buffer(request));
    std::string text(size, 0);
    asio::read(stream_, asio::buffer(text));
    return text;
  }

 private:
  asio::io_context io_;
  asio::ssl::context context_;
  asio::ssl::stream<asio::ip::tcp::socket> stream_;
};

class TlsClientCertificate : public ::testing::TestWithParam<ClientCertificateCase> {};

TEST_P(TlsClientCertificate, is_asked_for_as_tls_auth_clients_says) {
  Settings settings = tls_settings();
  settings.tls_auth_clients = GetParam().choice();
  RunningServer server(settings);
  auto ping = [&](const char* shows) {
    return TlsClient(tls_port(server), client_context(shows)).line("PING\r\n");
  };
  if (GetParam().served) {
    EXPECT_EQ(ping(GetParam().shows), "+PONG\r\n");
  } else {
    EXPECT_THROW(ping(GetParam().shows), std::system_error);
    EXPECT_EQ(ping("client"), "+PONG\r\n") << "the next client is none the worse";
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, TlsClientCertificate, ::testing::ValuesIn(client_certificate_cases));

std::vector<std::string> renewal(const std::string& certificate, const std::string& key) {
  return {"CONFIG", "SET", "tls-cert-file", certificate, "tls-key-file", key};
}

TEST(Tls, config_set_renews_the_certificate_for_those_who_come) {
  RunningServer server(tls_settings());
  TlsClient before(tls_port(server), client_context("client"));
  EXPECT_EQ(
      server.connect().call(renewal(certificates().certificate("stranger"), certificates().key("stranger"))),
      "+OK\r\n");
  EXPECT_THROW(TlsClient(tls_port(server), client_context("client", "ca")), std::system_error);
  EXPECT_EQ(TlsClient(tls_port(server), client_context("client", "other-ca")).line("PING\r\n"), "+PONG\r\n");
  EXPECT_EQ(before.line("PING\r\n"), "+PONG\r\n") << "who is connected stays";
}

TEST(Tls, config_set_tls_port_opens_and_closes_it) {
  Settings settings = tls_settings();
  settings.tls_port = 0;
  RunningServer server(settings);
  WireClient manager = server.connect();
  EXPECT_EQ(manager.call({"CONFIG", "SET", "tls-port", "-1"}), "+OK\r\n");
  const std::uint16_t port = tls_port(server);
  ASSERT_NE(port, 0);
  EXPECT_EQ(TlsClient(port, client_context("client")).line("PING\r\n"), "+PONG\r\n");
  EXPECT_EQ(manager.call({"CONFIG", "SET", "tls-port", "0"}), "+OK\r\n");
  EXPECT_THROW(TlsClient(port, client_context("client")), std::system_error);
  EXPECT_EQ(manager.call({"CONFIG", "SET", "tls-cert-file", "/nowhere.crt"}), "+OK\r\n");
  EXPECT_EQ(manager.call({"CONFIG", "SET", "tls-port", "-1"}).find("-ERR CONFIG SET failed"), 0u)
      << "what was loaded for the port that was closed is not used again";
  EXPECT_EQ(manager.call({"CONFIG", "GET", "tls-port"}), "*2\r\n$8\r\ntls-port\r\n$1\r\n0\r\n");
}

TEST(Tls, config_set_keeps_the_old_certificate_when_the_new_one_is_wrong) {
  RunningServer server(tls_settings());
  WireClient manager = server.connect();
  const std::pair<std::string, std::string> wrong[] = {
      {"/nowhere.crt", certificates().key("server")},
      {certificates().certificate("server"), "/nowhere.key"},
      {certificates().certificate("stranger"), certificates().key("server")},
  };
  const std::string name = manager.call({"CONFIG", "GET", "tls-*-file"});
  for (const auto& [certificate, key] : wrong) {
    EXPECT_EQ(manager.call(renewal(certificate, key)).find("-ERR CONFIG SET failed"), 0u) << certificate;
    EXPECT_EQ(manager.call({"CONFIG", "GET", "tls-*-file"}), name);
    EXPECT_EQ(TlsClient(tls_port(server), client_context("client")).line("PING\r\n"), "+PONG\r\n");
  }
}

TEST(Tls, config_set_reads_a_file_that_was_overwritten) {
  const ScratchFolder folder;
  const auto put = [&](const std::string& name) {
    const auto over = std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy_file(certificates().certificate(name), folder.file("crt"), over);
    std::filesystem::copy_file(certificates().key(name), folder.file("key"), over);
  };
  put("server");
  Settings settings = tls_settings();
  settings.tls_cert_file = folder.file("crt");
  settings.tls_key_file = folder.file("key");
  RunningServer server(settings);
  put("stranger");
  EXPECT_NO_THROW(TlsClient(tls_port(server), client_context("client", "ca"))) << "it was not told yet";
  EXPECT_EQ(server.connect().call({"CONFIG", "SET", "tls-cert-file", folder.file("crt")}), "+OK\r\n");
  EXPECT_NO_THROW(TlsClient(tls_port(server), client_context("client", "other-ca")));
}

TEST(Tls, config_set_tls_auth_clients_and_authorities_hold_for_those_who_come) {
  RunningServer server(tls_settings());
  WireClient manager = server.connect();
  EXPECT_THROW(TlsClient(tls_port(server), client_context("")).line("PING\r\n"), std::system_error);
  EXPECT_EQ(manager.call({"CONFIG", "SET", "tls-auth-clients", "no"}), "+OK\r\n");
  EXPECT_EQ(TlsClient(tls_port(server), client_context("")).line("PING\r\n"), "+PONG\r\n");
  EXPECT_EQ(manager.call({"CONFIG", "SET", "tls-auth-clients", "yes", "tls-ca-cert-file",
                          certificates().certificate("other-ca")}),
            "+OK\r\n");
  EXPECT_THROW(TlsClient(tls_port(server), client_context("client")).line("PING\r\n"), std::system_error);
  EXPECT_EQ(TlsClient(tls_port(server), client_context("stranger")).line("PING\r\n"), "+PONG\r\n");
}

TEST(Tls, handshake_has_a_time_limit) {
  RunningServer server(tls_settings());
  TlsClient established(tls_port(server), client_context("client"));
  EXPECT_EQ(established.line("PING\r\n"), "+PONG\r\n");
  WireClient silent = WireClient::tcp(tls_port(server));
  await_clients(server, 2);
  pass_ms(server, 5'000);
  EXPECT_EQ(server.run([](Server& s) { return s.clients.size(); }), 2u) << "it has ten seconds";
  pass_ms(server, 6'000);
  EXPECT_EQ(silent.until_closed(), "");
  await_clients(server, 1);
  pass_ms(server, 100'000);
  EXPECT_EQ(established.line("PING\r\n"), "+PONG\r\n") << "the limit is the handshake's only";
}

TEST(Tls, handshake_stopped_in_the_middle_is_timed_as_well) {
  RunningServer server(tls_settings());
  WireClient stopped = WireClient::tcp(tls_port(server));
  stopped.send(std::string("\x16\x03\x01\x02\x00\x01", 6));  // a ClientHello that is never completed
  await_clients(server, 1);
  pass_ms(server, 11'000);
  EXPECT_EQ(stopped.until_closed(), "");
  await_clients(server, 0);
}

// Silent connections to the TLS port.
std::vector<WireClient> silent_clients(RunningServer& server, std::size_t count) {
  std::vector<WireClient> silent;
  for (std::size_t i = 0; i < count; ++i) silent.push_back(WireClient::tcp(tls_port(server)));
  return silent;
}

// A client that can stop in the middle of its handshake.
class SlowClient {
 public:
  explicit SlowClient(WireClient line) : line_(std::move(line)) {
    SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(ssl_.get());
  }
  // Sends its greeting, and waits until the server answers it.
  void greet() {
    go_on();
    take(line_.some());
  }
  // Takes what has come, and sends what follows. True: the handshake is over.
  bool go_on() {
    const bool over = SSL_do_handshake(ssl_.get()) == 1;
    char bytes[4096];
    for (int n; (n = BIO_read(SSL_get_wbio(ssl_.get()), bytes, sizeof bytes)) > 0;)
      line_.send({bytes, static_cast<std::size_t>(n)});
    return over;
  }
  std::string ping() {
    while (!go_on()) take(line_.some());
    SSL_write(ssl_.get(), "PING\r\n", 6);
    go_on();
    char reply[64];
    int size = 0;
    while ((size = SSL_read(ssl_.get(), reply, sizeof reply)) <= 0) take(line_.some());
    return {reply, static_cast<std::size_t>(size)};
  }
  std::string until_closed() { return line_.until_closed(); }

 private:
  void take(const std::string& bytes) {
    BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
  }

  WireClient line_;
  asio::ssl::context context_ = client_context("client");
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{SSL_new(context_.native_handle()), &SSL_free};
};

constexpr std::size_t most_handshakes = transport::HandshakePlaces::most;

TEST(Tls, silent_handshakes_leave_first) {
  RunningServer server(tls_settings());
  server.stop_clock();
  std::vector<WireClient> silent = silent_clients(server, most_handshakes + 20);
  WireClient other = server.connect();
  EXPECT_EQ(other.call({"PING"}), "+PONG\r\n") << "a client without TLS is not held up";
  EXPECT_EQ(TlsClient(tls_port(server), client_context("client")).line("PING\r\n"), "+PONG\r\n");
  EXPECT_EQ(silent.front().until_closed(), "");
  EXPECT_TRUE(silent.back().quiet());
  EXPECT_LE(server.run([](Server& s) { return s.clients.size(); }), most_handshakes + 2);
}

TEST(Tls, handshakes_that_go_on_outlive_silent_ones) {
  RunningServer server(tls_settings());
  server.stop_clock();
  SlowClient slow(WireClient::tcp(tls_port(server)));
  slow.greet();
  std::vector<WireClient> silent = silent_clients(server, 3 * most_handshakes);
  EXPECT_EQ(silent[most_handshakes].until_closed(), "");
  EXPECT_EQ(slow.ping(), "+PONG\r\n");
}

TEST(Tls, greetings_without_more_leave_too) {
  RunningServer server(tls_settings());
  server.stop_clock();
  std::deque<SlowClient> greeted;
  for (std::size_t i = 0; i < most_handshakes; ++i)
    greeted.emplace_back(WireClient::tcp(tls_port(server))).greet();
  EXPECT_EQ(TlsClient(tls_port(server), client_context("client")).line("PING\r\n"), "+PONG\r\n");
  EXPECT_EQ(greeted.front().until_closed(), "");
}

// Not even its greeting has come when those of another address want its place.
TEST(Tls, handshakes_of_another_address_push_none_out) {
  RunningServer server(tls_settings());
  server.stop_clock();
  SlowClient slow(WireClient::tcp_from(9, tls_port(server)));
  await_clients(server, 1);
  std::deque<SlowClient> greeted;
  for (std::size_t i = 0; i < 2 * most_handshakes; ++i)
    greeted.emplace_back(WireClient::tcp(tls_port(server))).greet();
  EXPECT_EQ(greeted.front().until_closed(), "");
  EXPECT_EQ(slow.ping(), "+PONG\r\n");
}

TEST(Tls, handshake_limit_is_a_setting_and_0_is_none) {
  RunningServer server(tls_settings());
  WireClient manager = server.connect();
  EXPECT_EQ(manager.call({"CONFIG", "SET", "tls-handshake-timeout", "0"}), "+OK\r\n");
  WireClient silent = WireClient::tcp(tls_port(server));
  await_clients(server, 2);
  pass_ms(server, 1'000'000);
  EXPECT_EQ(server.run([](Server& s) { return s.clients.size(); }), 2u);
  EXPECT_EQ(manager.call({"CONFIG", "SET", "tls-handshake-timeout", "60"}), "+OK\r\n");
  pass_ms(server, 0);
  EXPECT_EQ(silent.until_closed(), "");
}

TEST(Tls, carries_large_values_and_pipelines) {
  Settings settings = tls_settings();
  settings.tls_auth_clients = 0;
  RunningServer server(settings);
  TlsClient client(tls_port(server), client_context(""));
  const std::string value(1 << 20, 'x');
  EXPECT_EQ(client.line(encode({"SET", "k", value})), "+OK\r\n");
  EXPECT_EQ(client.exactly(encode({"GET", "k"}), value.size() + 12), "$1048576\r\n" + value + "\r\n");
  std::string requests;
  std::string replies;
  for (int i = 0; i < 1000; ++i) {
    requests += encode({"ECHO", "abc"});
    replies += "$3\r\nabc\r\n";
  }
  EXPECT_EQ(client.exactly(requests, replies.size()), replies);
}

TEST(Tls, client_that_speaks_plain_text_is_closed) {
  RunningServer server(tls_settings());
  WireClient plain = WireClient::tcp(tls_port(server));
  plain.send(encode({"PING"}));
  EXPECT_EQ(plain.until_closed().find("PONG"), std::string::npos);
  await_clients(server, 0);
}

TEST(Tls, says_which_file_is_wrong) {
  Settings settings = tls_settings();
  settings.tls_cert_file = "/nowhere.crt";
  EXPECT_NE(listen_error(settings).find("certificate file '/nowhere.crt'"), std::string::npos)
      << listen_error(settings);
  settings = tls_settings();
  settings.tls_key_file = certificates().key("ca");
  EXPECT_NE(listen_error(settings).find("ca.key': key values mismatch"), std::string::npos)
      << listen_error(settings);
  settings = tls_settings();
  settings.tls_ca_cert_file.clear();
  EXPECT_NE(listen_error(settings).find("--tls-auth-clients no"), std::string::npos);
  settings = tls_settings();
  settings.tls_cert_file.clear();
  EXPECT_NE(listen_error(settings).find("--tls-cert-file"), std::string::npos);
}

}  // namespace
}  // namespace weir::kv::testing
