// The ways in: each serves the same, and each says clearly why it cannot listen.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/read_until.hpp>
#include <asio/ssl.hpp>
#include <asio/write.hpp>
#include <fstream>

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

TEST(Unix, names_the_path_it_cannot_use) {
  Settings settings = quiet_settings();
  settings.unixsocket = "/nowhere/at/all/s";
  EXPECT_EQ(listen_error(settings),
            "Could not listen on the unix socket /nowhere/at/all/s: No such file or directory. Check "
            "--unixsocket.");
  settings.unixsocket = "/tmp/" + std::string(200, 'x');
  EXPECT_NE(listen_error(settings).find("longer than the system's 107 characters"), std::string::npos);
}

// A certificate authority and a certificate signed by it, made for one test.
class Certificates {
 public:
  Certificates() {
    make_key("ca");
    make_key("server");
    const std::string quiet = " >/dev/null 2>&1";
    shell("openssl req -x509 -new -key " + key("ca") + " -subj /CN=test-ca -days 2 -out " +
          certificate("ca") + quiet);
    shell("openssl req -new -key " + key("server") + " -subj /CN=localhost -out " + folder_.file("csr") +
          quiet);
    shell("openssl x509 -req -in " + folder_.file("csr") + " -CA " + certificate("ca") + " -CAkey " +
          key("ca") + " -CAcreateserial -days 2 -out " + certificate("server") + quiet);
  }
  std::string key(const std::string& name) const { return folder_.file(name + ".key"); }
  std::string certificate(const std::string& name) const { return folder_.file(name + ".crt"); }

 private:
  void make_key(const std::string& name) {
    shell("openssl ecparam -name prime256v1 -genkey -noout -out " + key(name) + " 2>/dev/null");
  }
  static void shell(const std::string& command) {
    if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
  }
  ScratchFolder folder_;
};

const Certificates& certificates() {
  static const Certificates all;
  return all;
}

Settings tls_settings() {
  Settings settings = quiet_settings();
  settings.bind = "127.0.0.1";
  settings.tls_port = any_port;
  settings.tls_cert_file = certificates().certificate("server");
  settings.tls_key_file = certificates().key("server");
  settings.tls_ca_cert_file = certificates().certificate("ca");
  return settings;
}

class TlsClient {
 public:
  TlsClient(std::uint16_t port, bool shows_certificate) : stream_(io_, context(shows_certificate)) {
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
  asio::ssl::context& context(bool shows_certificate) {
    context_.load_verify_file(certificates().certificate("ca"));
    context_.set_verify_mode(asio::ssl::verify_peer);
    if (shows_certificate) {
      context_.use_certificate_chain_file(certificates().certificate("server"));
      context_.use_private_key_file(certificates().key("server"), asio::ssl::context::pem);
    }
    return context_;
  }
  asio::io_context io_;
  asio::ssl::context context_{asio::ssl::context::tls_client};
  asio::ssl::stream<asio::ip::tcp::socket> stream_;
};

TEST(Tls, serves_clients_with_a_certificate_and_no_others) {
  RunningServer server(tls_settings());
  const std::uint16_t port = server.run([](Server& s) { return s.port("tls"); });
  TlsClient good(port, true);
  EXPECT_EQ(good.line(encode({"SET", "k", "v"})), "+OK\r\n");
  EXPECT_EQ(server.connect().call({"GET", "k"}), "$1\r\nv\r\n");
  EXPECT_THROW(TlsClient(port, false).line("PING\r\n"), std::system_error);
  EXPECT_EQ(good.line("PING\r\n"), "+PONG\r\n");
}

TEST(Tls, carries_large_values_and_pipelines) {
  Settings settings = tls_settings();
  settings.tls_auth_clients = 0;
  RunningServer server(settings);
  TlsClient client(server.run([](Server& s) { return s.port("tls"); }), false);
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
  WireClient plain = WireClient::tcp(server.run([](Server& s) { return s.port("tls"); }));
  plain.send(encode({"PING"}));
  EXPECT_EQ(plain.until_closed().find("PONG"), std::string::npos);
  while (server.run([](Server& s) { return s.clients.size(); }) != 0) {
  }
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
