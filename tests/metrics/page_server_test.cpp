// The page for Prometheus, with clients that misbehave.
#include "metrics/page_server.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <string>
#include <vector>

#include "link/unique_fd.hpp"

namespace weir::metrics {
namespace {

using testing::EndsWith;
using testing::StartsWith;

// A process of its own: it serves until it is killed.
class ServingProcess {
 public:
  explicit ServingProcess(const PageLimits& limits) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      asio::io_context io(1);
      const auto server =
          PageServer::listen(io, "127.0.0.1", 0, [] { return std::string("the page\n"); }, limits);
      const std::uint16_t port = server ? server->port() : 0;
      if (::write(ends[1], &port, sizeof port) != sizeof port) ::_exit(1);
      io.run();
      ::_exit(1);
    }
    ::close(ends[1]);
    EXPECT_EQ(::read(ends[0], &port_, sizeof port_), static_cast<ssize_t>(sizeof port_));
    ::close(ends[0]);
  }
  ~ServingProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  // A client that has said so much.
  link::UniqueFd client(std::string_view said) const {
    link::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port_);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    EXPECT_EQ(::send(fd.get(), said.data(), said.size(), MSG_NOSIGNAL), static_cast<ssize_t>(said.size()));
    return fd;
  }

 private:
  pid_t pid_ = 0;
  std::uint16_t port_ = 0;
};

std::string all_of(const link::UniqueFd& fd) {
  std::string text;
  char block[1024];
  for (ssize_t got; (got = ::recv(fd.get(), block, sizeof block, 0)) > 0;)
    text.append(block, static_cast<std::size_t>(got));
  return text;
}

bool still_held(const link::UniqueFd& fd) {
  char byte = 0;
  return ::recv(fd.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

constexpr std::string_view get = "GET /metrics HTTP/1.1\r\n\r\n";
constexpr std::string_view incomplete[] = {"", "GET /metr", "GET /metrics HTTP/1.1\r\nHost: x\r\n"};

TEST(PageServer, serves_while_others_are_silent_or_in_the_middle_of_a_request) {
  const ServingProcess server{{}};
  std::vector<link::UniqueFd> others;
  for (const auto said : incomplete) others.push_back(server.client(said));
  const auto page = all_of(server.client(get));
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(page, EndsWith("\r\n\r\nthe page\n"));
  for (const auto& other : others) EXPECT_TRUE(still_held(other));
}

TEST(PageServer, hangs_up_on_who_takes_too_long) {
  const ServingProcess server{{.patience = std::chrono::milliseconds(1)}};
  for (const auto said : incomplete) EXPECT_EQ(all_of(server.client(said)), "");
}

TEST(PageServer, silent_clients_leave_first_however_often_they_come) {
  const ServingProcess server{{.connections = 4, .patience = std::chrono::hours(1)}};
  for (int round = 0; round < 5; ++round) {
    std::vector<link::UniqueFd> others;
    for (int i = 0; i < 40; ++i) others.push_back(server.client(incomplete[i % 3]));
    EXPECT_THAT(all_of(server.client(get)), EndsWith("the page\n"));
    EXPECT_EQ(all_of(others.front()), "");
  }
}

TEST(PageServer, shows_nothing_to_a_page_that_a_name_led_here) {
  const ServingProcess server{{}};
  std::array<char, 256> name{};
  ASSERT_EQ(::gethostname(name.data(), name.size() - 1), 0);
  struct Row {
    std::string host;
    bool served;
  };
  const Row rows[] = {{"127.0.0.1:9121", true},
                      {"[::1]:9121", true},
                      {"localhost:9121", true},
                      {"LOCALHOST", true},
                      {name.data(), true},
                      {std::string(name.data()) + ".lan:1", true},
                      {"evil.example", false},
                      {"evil.example:9121", false},
                      {"localhost.evil.example", false},
                      {std::string(name.data()) + "x", false}};
  for (const Row& row : rows) {
    const std::string request = "GET /metrics HTTP/1.1\r\nAccept: */*\r\nhost: " + row.host + " \r\n\r\n";
    EXPECT_THAT(all_of(server.client(request)), StartsWith(row.served ? "HTTP/1.1 200 " : "HTTP/1.1 421 "))
        << row.host;
  }
  const std::string late =
      "GET /metrics?" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: evil.example\r\n\r\n";
  EXPECT_THAT(all_of(server.client(late)), StartsWith("HTTP/1.1 421 "));
}

TEST(PageServer, says_what_it_has_to_who_asks_for_something_else) {
  const ServingProcess server{{}};
  EXPECT_THAT(all_of(server.client("GET / HTTP/1.1\r\n\r\n")), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(all_of(server.client("POST /metrics HTTP/1.1\r\n\r\n")), StartsWith("HTTP/1.1 405 "));
}

TEST(PageServer, ends_with_its_listener_while_a_client_is_in_the_middle_of_a_request) {
  asio::io_context io(1);
  auto server = PageServer::listen(io, "127.0.0.1", 0, [] { return std::string("the page\n"); });
  ASSERT_TRUE(server) << server.error();
  asio::ip::tcp::socket client(io);
  client.connect({asio::ip::address_v4::loopback(), server->port()});
  asio::write(client, asio::buffer(std::string_view("GET /me")));
  io.poll();
  {
    const PageServer gone = std::move(*server);
  }
  asio::write(client, asio::buffer(std::string_view("trics HTTP/1.1\r\n\r\n")));
  std::string said;
  std::error_code why;
  asio::async_read(client, asio::dynamic_buffer(said),
                   [&](std::error_code error, std::size_t) { why = error; });
  while (!why) io.run_one();
  EXPECT_EQ(said, "");
}

TEST(PageServer, says_why_it_cannot_listen) {
  asio::io_context io(1);
  const auto first = PageServer::listen(io, "127.0.0.1", 0, [] { return std::string(); });
  ASSERT_TRUE(first);
  const auto second = PageServer::listen(io, "127.0.0.1", first->port(), [] { return std::string(); });
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error(), StartsWith("cannot listen on 127.0.0.1:" + std::to_string(first->port())));
}

}  // namespace
}  // namespace weir::metrics
