// Datagram rsockets: first through UDP, then from queue pair to queue pair.
#include <gmock/gmock.h>

#include <future>

#include "tests/rsocket/fixture.hpp"
#include "verbs/rsocket/datagram_wire.hpp"

namespace weir::rsocket {
namespace {

class Datagrams : public testing::Test {
 protected:
  Datagrams() {
    bind_to_loopback(server_);
    at_ = name_of(server_);
  }
  ssize_t send_to(const Rsocket& from, std::string_view text, sockaddr_in to, int flags = 0) {
    return ::rsendto(from.get(), text.data(), text.size(), flags, as_address(to), sizeof to);
  }
  std::string receive_from(const Rsocket& socket, sockaddr_in& from) {
    std::string text(8192, '\0');
    socklen_t size = sizeof from;
    const auto got = ::rrecvfrom(socket.get(), text.data(), text.size(), 0, as_address(from), &size);
    EXPECT_GE(got, 0) << std::strerror(errno);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return text;
  }
  Rsocket server_ = datagram(), client_ = datagram();
  sockaddr_in at_{};
};

TEST_F(Datagrams, go_there_and_back) {
  sockaddr_in from{};
  for (int round = 0; round < 100; ++round) {  // through UDP at first, then not
    const std::string text = "ping " + std::to_string(round);
    ASSERT_EQ(send_to(client_, text, at_), static_cast<ssize_t>(text.size())) << std::strerror(errno);
    ASSERT_EQ(receive_from(server_, from), text);
    EXPECT_EQ(from.sin_port, name_of(client_).sin_port);
    ASSERT_EQ(send_to(server_, "pong", from), 4) << std::strerror(errno);
    sockaddr_in answered{};
    ASSERT_EQ(receive_from(client_, answered), "pong");
    EXPECT_EQ(answered.sin_port, at_.sin_port);
    EXPECT_EQ(answered.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  }
}

TEST_F(Datagrams, keep_their_boundaries_and_lose_what_does_not_fit) {
  ASSERT_EQ(connect(client_, at_), 0);
  send(client_, "first");
  EXPECT_EQ(receive(server_, 2), "fi");
  send(client_, "second");
  EXPECT_EQ(receive(server_, 3, MSG_PEEK), "sec");
  EXPECT_EQ(receive(server_), "second");
}

TEST_F(Datagrams, may_be_empty) {
  ASSERT_EQ(connect(client_, at_), 0);
  EXPECT_EQ(send(client_, ""), 0);
  EXPECT_EQ(poll(server_, POLLIN), POLLIN);
  EXPECT_EQ(receive(server_), "");
  EXPECT_EQ(poll(server_, POLLIN, 0), 0);
}

TEST_F(Datagrams, as_large_as_the_mtu_allows_arrive_and_larger_are_refused) {
  ASSERT_EQ(connect(client_, at_), 0);
  const std::string largest = pattern(4096 - max_udp_header_bytes);
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(send(client_, largest), static_cast<ssize_t>(largest.size())) << std::strerror(errno);
    EXPECT_TRUE(receive(server_, 8192) == largest) << round;
  }
  EXPECT_EQ(send(client_, largest + "x"), -1);
  EXPECT_EQ(errno, EMSGSIZE);
}

TEST_F(Datagrams, connected_hear_their_peer_only) {
  Rsocket stranger = datagram();
  ASSERT_EQ(connect(client_, at_), 0);
  sockaddr_in from{};
  send(client_, "hello");
  receive_from(server_, from);
  EXPECT_GE(send_to(stranger, "noise", from), -1);
  EXPECT_EQ(send_to(server_, "answer", from), 6);
  EXPECT_EQ(receive(client_), "answer");
}

TEST_F(Datagrams, want_a_destination) {
  EXPECT_EQ(send(client_, "x"), -1);
  EXPECT_EQ(errno, EDESTADDRREQ);
}

TEST_F(Datagrams, to_nobody_are_refused_at_the_next_call) {
  sockaddr_in nobody;
  {
    Rsocket gone = datagram();
    bind_to_loopback(gone);
    nobody = name_of(gone);
  }
  ASSERT_EQ(connect(client_, nobody), 0);
  EXPECT_EQ(send(client_, "x"), 1);
  EXPECT_EQ(receive(client_), words(ECONNREFUSED));
}

TEST_F(Datagrams, none_there_would_block) {
  EXPECT_EQ(receive(server_, 1, MSG_DONTWAIT), words(EAGAIN));
  set_blocking(server_, false);
  EXPECT_EQ(receive(server_), words(EAGAIN));
  EXPECT_EQ(poll(server_, POLLIN | POLLOUT, 0), POLLOUT);
}

TEST_F(Datagrams, wake_who_sleeps_for_them) {
  ASSERT_EQ(connect(client_, at_), 0);
  for (int round = 0; round < 20; ++round) {
    auto sleeper = std::async(std::launch::async, [&] { return receive(server_); });
    send(client_, "wake");
    EXPECT_EQ(sleeper.get(), "wake");
  }
}

// What a program that knows nothing of rsockets sends to that UDP port.
TEST_F(Datagrams, plain_udp_and_nonsense_are_ignored) {
  const link::UniqueFd plain(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  for (const std::string& bytes :
       {std::string("hello, this is not for you at all"), std::string(3, 'U'), std::string()})
    ASSERT_GE(::sendto(plain.get(), bytes.data(), bytes.size(), 0, as_address(at_), sizeof at_), 0);
  ASSERT_EQ(send_to(client_, "real", at_), 4);
  EXPECT_EQ(receive(server_), "real");
}

TEST_F(Datagrams, say_what_they_are) {
  EXPECT_EQ(value_of(client_, SOL_SOCKET, SO_TYPE), SOCK_DGRAM);
  EXPECT_EQ(::rlisten(client_.get(), 1), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  set(client_, SOL_SOCKET, SO_RCVBUF, 50000);
  EXPECT_EQ(value_of(client_, SOL_SOCKET, SO_RCVBUF), 100000);
}

}  // namespace
}  // namespace weir::rsocket
