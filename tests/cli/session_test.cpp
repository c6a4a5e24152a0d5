// A session with servers that misbehave: a real listening socket, and a script of what it sends.
#include "cli/client/session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <thread>

#include "tests/scratch_directory.hpp"
#include "transport/owned_fd.hpp"

namespace weir::client {
namespace {

constexpr Milliseconds limit{5000};

// Listens on a unix socket, accepts one connection, waits for a request, sends `answer` and closes.
class OneShotServer {
 public:
  explicit OneShotServer(std::string answer) : answer_(std::move(answer)) {
    endpoint_.transport = Transport::unix_socket;
    endpoint_.path = directory_.path() + "/s";
    listener_ = OwnedFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    endpoint_.path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    thread_ = std::jthread([this] { serve(); });
  }
  ~OneShotServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  const Endpoint& endpoint() const { return endpoint_; }

 private:
  void serve() {
    OwnedFd peer(::accept(listener_.get(), nullptr, nullptr));
    if (!peer) return;
    char request[4096];
    if (::recv(peer.get(), request, sizeof request, 0) <= 0) return;
    ::send(peer.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
  }

  std::string answer_;
  test::ScratchDirectory directory_;
  Endpoint endpoint_;
  OwnedFd listener_;
  std::jthread thread_;
};

const Arguments ping{"PING"};

TEST(Session, gives_the_reply_and_then_says_that_the_server_is_gone) {
  OneShotServer server("+PONG\r\n");
  auto session = Session::open(server.endpoint(), limit);
  ASSERT_TRUE(session);
  const auto reply = (*session)->ask(ping, limit);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->text, "PONG");
  const auto after = (*session)->next(limit);
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().kind, ErrorKind::closed);
}

TEST(Session, gives_all_answers_in_order_or_says_why_one_is_missing) {
  for (const std::size_t asked : {2u, 3u}) {
    OneShotServer server(":1\r\n-ERR no\r\n");
    auto session = Session::open(server.endpoint(), limit);
    ASSERT_TRUE(session);
    const auto replies = (*session)->ask_all(std::vector<Arguments>(asked, ping), limit);
    ASSERT_EQ(replies.has_value(), asked == 2);
    if (!replies) {
      EXPECT_EQ(replies.error().kind, ErrorKind::closed);
      continue;
    }
    EXPECT_EQ((*replies)[0].text, "1");
    EXPECT_TRUE((*replies)[1].is_error());
  }
}

TEST(Session, says_when_the_server_goes_in_the_middle_of_a_reply) {
  OneShotServer server("$100\r\nhalf");
  auto session = Session::open(server.endpoint(), limit);
  ASSERT_TRUE(session);
  const auto reply = (*session)->ask(ping, limit);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::closed);
}

TEST(Session, says_when_the_peer_does_not_speak_resp) {
  OneShotServer server("HTTP/1.1 400 Bad Request\r\n\r\n");
  auto session = Session::open(server.endpoint(), limit);
  ASSERT_TRUE(session);
  const auto reply = (*session)->ask(ping, limit);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::protocol);
}

TEST(Session, reports_a_refused_login_with_the_servers_words) {
  OneShotServer server("-WRONGPASS invalid\r\n");
  auto session = Session::open(server.endpoint(), limit);
  ASSERT_TRUE(session);
  const auto done = (*session)->log_in({.user = {}, .password = "x", .database = 0, .resp = 0});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::refused);
  EXPECT_EQ(done.error().what, "AUTH failed: WRONGPASS invalid");
}

TEST(Session, names_the_socket_nobody_listens_on) {
  Endpoint endpoint;
  endpoint.transport = Transport::unix_socket;
  endpoint.path = "/tmp/weir-nobody-listens-here";
  const auto session = Session::open(endpoint, limit);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().kind, ErrorKind::unreachable);
  EXPECT_THAT(session.error().what, testing::HasSubstr(endpoint.path));
  endpoint.path = std::string(200, 'x');
  EXPECT_THAT(Session::open(endpoint, limit).error().what, testing::HasSubstr("longer than"));
}

TEST(LoginCommands, come_in_the_order_the_server_needs_them) {
  const Login all{.user = "u", .password = "p", .database = 3, .resp = 3};
  EXPECT_EQ(login_commands(all),
            (std::vector<Arguments>{{"AUTH", "u", "p"}, {"HELLO", "3"}, {"SELECT", "3"}}));
  EXPECT_EQ(login_commands({.user = "u", .password = {}, .database = 0, .resp = 0}),
            std::vector<Arguments>{});
}

}  // namespace
}  // namespace weir::client
