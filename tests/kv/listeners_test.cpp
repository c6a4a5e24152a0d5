// The listeners: all serve alike, and each gives a clear error if it cannot listen.
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sys/stat.h>

#include <asio/ip/tcp.hpp>
#include <fstream>

#include "kv/settings/options.hpp"
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

TEST(Tcp, serves_on_the_port_the_system_chose_and_says_which) {
  RunningServer server(tcp_settings());
  const std::uint16_t port = server.run([](Server& s) { return s.port("tcp"); });
  ASSERT_NE(port, 0);
  WireClient client = WireClient::tcp(port);
  EXPECT_EQ(client.call({"SET", "k", "v"}), "+OK\r\n");
  EXPECT_EQ(server.connect().call({"GET", "k"}), "$1\r\nv\r\n");
  const auto where = server.run([](Server& s) { return s.listeners.where(); });
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

TEST(Tcp, config_set_of_what_is_set_already_leaves_the_listener_alone) {
  RunningServer server(tcp_settings());
  const std::uint16_t port = server.run([](Server& s) { return s.port("tcp"); });
  WireClient client = WireClient::tcp(port);
  EXPECT_EQ(client.call({"CONFIG", "SET", "bind", "127.0.0.1"}), "+OK\r\n");
  // Opened again it would have got another.
  EXPECT_EQ(server.run([](Server& s) { return s.port("tcp"); }), port);
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
  EXPECT_NE(parse_options({"--help"})->answer.find("0 follows the umask (0)"), std::string::npos);
}

// It was made as the umask allows and restricted when it listened already (CVE-2023-45145).
TEST(Unix, is_at_no_time_open_to_more_users_than_told) {
  const mode_t mask = ::umask(0);
  const ScratchFolder folder;
  const std::string path = folder.file("s");
  std::atomic<bool> over = false;
  std::atomic<unsigned> seen = 0;
  std::thread watcher([&] {
    struct stat info{};
    while (!over) {
      if (::stat(path.c_str(), &info) == 0) seen |= info.st_mode & 0777;
    }
  });
  asio::io_context io;
  SocketPoller poller(io, [] {});
  for (int i = 0; i < 500; ++i) {
    EXPECT_TRUE(listen_unix(poller, path, 0600, SocketOptions{}, [](auto) {}, [](std::string_view) {}));
  }
  over = true;
  watcher.join();
  ::umask(mask);
  EXPECT_EQ(seen & ~0600u, 0u);
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

}  // namespace
}  // namespace weir::kv::testing
