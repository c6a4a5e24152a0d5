// The ways in: each serves the same, and each says clearly why it cannot listen.
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sys/stat.h>

#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/read_until.hpp>
#include <asio/ssl.hpp>
#include <asio/write.hpp>
#include <fstream>

#include "kv/server/options.hpp"
#include "tests/kv/certificates.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

Settings tcp_settings() {
  Settings settings = quiet_settings();
  settings.port = any_port;
  settings.bind = "127.0.0.1";
  return settings;
}

std::string listen_error(Settings settings) {
  try {
    const RunningServer server(std::move(settings));
  } catch (const std::exception& problem) {
    return problem.what();
  }
  return "it listens";
}

TEST(Tcp, serves_on_the_port_the_system_chose_and_says_which) {
  RunningServer server(tcp_settings());
  const std::uint16_t port = server.run([](Server& s) { return s.port("tcp"); });
  ASSERT_NE(port, 0);
  WireClient client = WireClient::tcp(port);
  EXPECT_EQ(client.call({"SET", "k", "v"}), "+OK\r\n");
  EXPECT_EQ(server.connect().call({"GET", "k"}), "$1\r\nv\r\n");
  const auto where = server.run([](Server& s) { return s.listening(); });
  EXPECT_EQ(where.at(0), "tcp 127.0.0.1:" + std::to_string(port));
}

TEST(Tcp, names_the_port_that_is_taken) {
  RunningServer server(tcp_settings());
  Settings second = tcp_settings();
  second.port = server.run([](Server& s) { return s.port("tcp"); });
  EXPECT_EQ(listen_error(second),
            "Could not listen on 127.0.0.1:" + std::to_string(second.port) +
                ": Address already in use. Another program has the port; stop it or choose "
                "another with --port.");
}

TEST(Tcp, optional_address_may_be_missing_and_others_may_not) {
  Settings settings = tcp_settings();
  settings.bind = "127.0.0.1 -192.0.2.1";
  EXPECT_EQ(listen_error(settings), "it listens");
  settings.bind = "127.0.0.1 192.0.2.1";
  EXPECT_NE(listen_error(settings).find("This host has no such address"), std::string::npos);
}

TEST(Tcp, config_set_port_moves_the_server_and_keeps_its_clients) {
  RunningServer server(tcp_settings());
  const std::uint16_t old_port = server.run([](Server& s) { return s.port("tcp"); });
  WireClient client = WireClient::tcp(old_port);
  EXPECT_EQ(client.call({"CONFIG", "SET", "port", "-1"}), "+OK\r\n");
  const std::uint16_t new_port = server.run([](Server& s) { return s.port("tcp"); });
  ASSERT_NE(new_port, 0);
  EXPECT_EQ(client.call({"PING"}), "+PONG\r\n");
  EXPECT_EQ(WireClient::tcp(new_port).call({"PING"}), "+PONG\r\n");
  EXPECT_EQ(client.call({"CONFIG", "SET", "port", "0"}), "+OK\r\n");
  EXPECT_THROW(WireClient::tcp(new_port), std::runtime_error);
}

TEST(Tcp, config_get_tells_a_port_that_the_system_chose) {
  Settings settings = with_certificates(tcp_settings());
  settings.tls_port = any_port;
  RunningServer server(settings);
  for (const auto& [setting, kind] : {std::pair("port", "tcp"), std::pair("tls-port", "tls")}) {
    const std::string port = std::to_string(server.run([kind = kind](Server& s) { return s.port(kind); }));
    EXPECT_EQ(elements(server.connect().call({"CONFIG", "GET", setting})).at(2),
              "$" + std::to_string(port.size()) + "\r\n" + port + "\r\n");
  }
  EXPECT_EQ(elements(server.connect().call({"CONFIG", "GET", "rdma-port"})).at(2), "$1\r\n0\r\n");
}

// One that is not the loopback address; nullopt: the host has none.
std::optional<in_addr> own_address() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return std::nullopt;
  std::optional<in_addr> found;
  for (const ifaddrs* one = all; one != nullptr && !found; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_LOOPBACK) == 0) found = reinterpret_cast<sockaddr_in*>(one->ifa_addr)->sin_addr;
  }
  ::freeifaddrs(all);
  return found;
}

TEST(Tcp, protected_mode_serves_the_host_by_its_own_address) {
  const auto address = own_address();
  if (!address) GTEST_SKIP() << "this host has the loopback address only";
  Settings settings = tcp_settings();
  settings.bind = ::inet_ntoa(*address);
  RunningServer server(settings);
  const std::uint16_t port = server.run([](Server& s) { return s.port("tcp"); });
  EXPECT_EQ(WireClient::tcp(port, *address).call({"PING"}), "+PONG\r\n");
}

TEST(Tcp, config_set_tcp_keepalive_holds_for_those_who_come) {
  RunningServer server(tcp_settings());
  WireClient manager = WireClient::tcp(server.run([](Server& s) { return s.port("tcp"); }));
  auto kept_alive = [&](WireClient& client) {
    const std::string id = client.call({"CLIENT", "ID"});
    return server.run([number = std::stoull(id.substr(1))](Server& s) {
      int idle_s = 0;
      socklen_t size = sizeof idle_s;
      ::getsockopt(s.clients.at(number)->connection().descriptor(), IPPROTO_TCP, TCP_KEEPIDLE, &idle_s,
                   &size);
      return idle_s;
    });
  };
  EXPECT_EQ(kept_alive(manager), 300);
  EXPECT_EQ(manager.call({"CONFIG", "SET", "tcp-keepalive", "77"}), "+OK\r\n");
  WireClient next = WireClient::tcp(server.run([](Server& s) { return s.port("tcp"); }));
  EXPECT_EQ(kept_alive(next), 77);
}

TEST(Unix, leaves_the_permissions_to_the_umask_unless_told) {
  const mode_t mask = ::umask(0027);
  const RunningServer server;
  ::umask(mask);
  struct stat info{};
  ::stat(server.path().c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0750u);
  EXPECT_NE(parse_options({"--help"})->answer.find("umask makes (0)"), std::string::npos);
}

TEST(Unix, removes_its_socket_and_replaces_a_stale_one) {
  const ScratchFolder folder;
  Settings settings = quiet_settings();
  settings.unixsocket = folder.file("s");
  settings.unixsocketperm = 0700;
  {
    RunningServer server(settings);
    EXPECT_EQ(server.connect().call({"PING"}), "+PONG\r\n");
    struct stat info{};
    ::stat(settings.unixsocket.c_str(), &info);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    EXPECT_NE(listen_error(settings).find("another program listens there"), std::string::npos);
  }
  EXPECT_FALSE(std::filesystem::exists(settings.unixsocket));
  // A killed server leaves its socket behind.
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, settings.unixsocket.c_str());
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(fd);
  EXPECT_EQ(listen_error(settings), "it listens");
  std::ofstream(settings.unixsocket) << "a file";
  EXPECT_NE(listen_error(settings).find("a file is in the way"), std::string::npos);
}

TEST(Unix, leaves_the_socket_of_a_server_that_took_its_path) {
  const ScratchFolder folder;
  Settings settings = quiet_settings();
  settings.unixsocket = folder.file("s");
  auto first = std::make_unique<RunningServer>(settings);
  std::filesystem::remove(settings.unixsocket);
  RunningServer second(settings);
  first.reset();
  EXPECT_EQ(second.connect().call({"PING"}), "+PONG\r\n");
}

TEST(Unix, names_the_path_it_cannot_use) {
  Settings settings = quiet_settings();
  settings.unixsocket = "/nowhere/at/all/s";
  EXPECT_EQ(listen_error(settings),
            "Could not listen on the unix socket /nowhere/at/all/s: No such file or directory. Check "
            "--unixsocket.");
  settings.unixsocket = "/tmp/" + std::string(200, 'x');
  EXPECT_NE(listen_error(settings).find("longer than the system's 107 characters"), std::string::npos);
}

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
  // For replies of one line.
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
  stopped.send(std::string("\x16\x03\x01\x02\x00\x01", 6));  // a ClientHello that never comes whole
  await_clients(server, 1);
  pass_ms(server, 11'000);
  EXPECT_EQ(stopped.until_closed(), "");
  await_clients(server, 0);
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
