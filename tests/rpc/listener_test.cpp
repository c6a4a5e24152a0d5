#include "rpc/transport/listener.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <asio/ip/tcp.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "rpc/server.hpp"
#include "tests/scratch_directory.hpp"

namespace weir::rpc {
namespace {

class UnixListener : public testing::Test {
 protected:
  asio::io_context io{1};
  test::ScratchDirectory folder;
  const std::string path = folder.file("s");
  Server server{io};

  Result<std::string> listen() { return server.listen("unix://" + path); }
  // The socket file that a killed server leaves behind.
  static void leave_socket(const std::string& at) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    at.copy(name.sun_path, sizeof name.sun_path - 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
    close(fd);
  }
};

TEST_F(UnixListener, takes_the_place_of_a_socket_that_a_killed_server_left) {
  leave_socket(path);
  const auto address = listen();
  EXPECT_TRUE(address) << address.error().what;
}

TEST_F(UnixListener, leaves_the_socket_of_a_server_that_runs) {
  ASSERT_TRUE(listen());
  Server second{io};
  const auto address = second.listen("unix://" + path);
  ASSERT_FALSE(address);
  EXPECT_NE(address.error().what.find(path), std::string::npos) << address.error().what;
  EXPECT_TRUE(std::filesystem::is_socket(path));
}

TEST_F(UnixListener, leaves_a_file_that_is_no_socket) {
  std::ofstream(path) << "somebody's work";
  const auto address = listen();
  ASSERT_FALSE(address);
  EXPECT_NE(address.error().what.find(path), std::string::npos) << address.error().what;
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "somebody's work");
}

TEST_F(UnixListener, leaves_a_link) {
  const std::string there = folder.file("there");
  leave_socket(there);
  std::filesystem::create_symlink(there, path);
  EXPECT_FALSE(listen());
  EXPECT_TRUE(std::filesystem::is_symlink(path));
}

TEST_F(UnixListener, leaves_at_its_end_what_another_server_has_bound_there_since) {
  const auto inode = [this] {
    struct stat info{};
    return lstat(path.c_str(), &info) == 0 ? info.st_ino : 0;
  };
  {
    Server first{io};
    ASSERT_TRUE(first.listen("unix://" + path));
    std::filesystem::remove(path);
    ASSERT_TRUE(listen());
    const auto bound = inode();
    first.stop();
    EXPECT_EQ(inode(), bound);
  }
  server.stop();
  EXPECT_FALSE(std::filesystem::exists(path));
}

// The third number of a row in the kernel's table says whether a timer runs: for an idle connection, the
// keepalive timer.
std::string timer_of(std::uint16_t local, std::uint16_t remote) {
  std::ifstream table("/proc/self/net/tcp");
  const auto ends_with_port = [](std::string_view address, std::uint16_t port) {
    char hex[8];
    std::snprintf(hex, sizeof hex, ":%04X", port);
    return address.ends_with(hex);
  };
  std::string number, here, there, state, queues, timer, rest;
  while (table >> number >> here >> there >> state >> queues >> timer && std::getline(table, rest))
    if (ends_with_port(here, local) && ends_with_port(there, remote)) return timer.substr(0, 2);
  return "none such";
}

TEST(TcpListener, asks_of_idle_clients_whether_their_host_is_still_there) {
  asio::io_context io(1);
  Server server(io);
  const auto address = server.listen("tcp://127.0.0.1:0");
  ASSERT_TRUE(address) << address.error().what;
  const auto port = static_cast<std::uint16_t>(std::stoi(address->substr(address->rfind(':') + 1)));
  asio::ip::tcp::socket client(io);
  client.connect({asio::ip::address_v4::loopback(), port});
  while (server.open() == 0) io.run_one();
  EXPECT_EQ(timer_of(port, client.local_endpoint().port()), "02");
}

}  // namespace
}  // namespace weir::rpc
