// Under librspreload.so: creating and naming sockets, and their options.
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include <cerrno>

#include "tests/rspreload/preloaded.hpp"

namespace weir::rspreload {
namespace {

TEST_F(Calls, make_rsockets_of_internet_sockets_only) {
  EXPECT_TRUE(is_rsocket(listener.get()));
  EXPECT_TRUE(is_rsocket(client.get()));
  EXPECT_TRUE(is_rsocket(server.get()));
  EXPECT_TRUE(is_rsocket(Fd(::socket(AF_INET6, SOCK_DGRAM, 0)).get()));
  EXPECT_FALSE(is_rsocket(Fd(::socket(AF_UNIX, SOCK_STREAM, 0)).get()));
}

TEST_F(Calls, name_both_ends) {
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  EXPECT_EQ(::getpeername(client.get(), as_address(peer), &size), 0);
  EXPECT_EQ(peer.sin_port, name_of(listener.get()).sin_port);
  Fd again(::socket(AF_INET, SOCK_STREAM, 0));
  auto address = name_of(listener.get());
  EXPECT_EQ(::connect(again.get(), as_address(address), sizeof address), 0);
  size = sizeof peer;
  const Fd taken(::accept(listener.get(), as_address(peer), &size));
  EXPECT_EQ(peer.sin_port, name_of(again.get()).sin_port);
}

TEST_F(Calls, set_and_tell_whether_a_socket_blocks) {
  const auto blocks = [](int fd) { return (::fcntl(fd, F_GETFL) & O_NONBLOCK) == 0; };
  EXPECT_TRUE(blocks(from()));
  EXPECT_FALSE(blocks(to())) << "accept4 was told";
  EXPECT_EQ(::fcntl(from(), F_SETFL, O_NONBLOCK), 0);
  EXPECT_FALSE(blocks(from()));
  for (int on : {0, 1}) {
    EXPECT_EQ(::ioctl(from(), FIONBIO, &on), 0);
    EXPECT_EQ(blocks(from()), on == 0);
  }
  EXPECT_EQ(::fcntl(from(), F_SETFD, FD_CLOEXEC), 0);
  EXPECT_EQ(::fcntl(from(), F_GETFD), FD_CLOEXEC);
}

TEST_F(Calls, count_what_is_unread) {
  const auto unread = [this] {
    int bytes = -1;
    EXPECT_EQ(::ioctl(to(), FIONREAD, &bytes), 0);
    return bytes;
  };
  EXPECT_EQ(unread(), 0);
  send_and_wait("hello");
  EXPECT_EQ(unread(), 5);
  EXPECT_EQ(received(5), "hello");
  EXPECT_EQ(::shutdown(from(), SHUT_WR), 0);
  wait_for(to(), POLLIN);
  EXPECT_EQ(unread(), 0) << "the end is nothing to read";
}

TEST_F(Calls, set_options_that_programs_set) {
  const std::pair<int, int> names[] = {
      {SOL_SOCKET, SO_REUSEADDR},  {SOL_SOCKET, SO_REUSEPORT},   {SOL_SOCKET, SO_KEEPALIVE},
      {SOL_SOCKET, SO_RCVBUF},     {SOL_SOCKET, SO_SNDBUF},      {IPPROTO_TCP, TCP_NODELAY},
      {IPPROTO_TCP, TCP_KEEPIDLE}, {IPPROTO_TCP, TCP_KEEPINTVL}, {IPPROTO_TCP, TCP_KEEPCNT}};
  for (const auto& [level, name] : names) {
    const int value = 1;
    EXPECT_EQ(::setsockopt(from(), level, name, &value, sizeof value), 0) << level << " " << name;
  }
}

TEST_F(Calls, end_one_direction) {
  EXPECT_EQ(::shutdown(from(), SHUT_WR), 0);
  wait_for(to(), POLLIN);
  char byte;
  EXPECT_EQ(::read(to(), &byte, 1), 0);
  EXPECT_EQ(::write(to(), "x", 1), 1);
  EXPECT_EQ(::read(from(), &byte, 1), 1);
}

}  // namespace
}  // namespace weir::rspreload
