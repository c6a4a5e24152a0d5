// Under librspreload.so: making, naming, closing sockets, and their options.
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

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

TEST_F(Calls, give_a_closed_number_to_others) {
  const int number = server.release();
  EXPECT_EQ(::close(number), 0);
  const Fd event(::fcntl(Fd(::eventfd(7, EFD_CLOEXEC)).get(), F_DUPFD, number));
  EXPECT_EQ(event.get(), number);
  std::uint64_t value = 0;
  EXPECT_EQ(::read(event.get(), &value, sizeof value), static_cast<ssize_t>(sizeof value));
  EXPECT_EQ(value, 7U);
}

TEST_F(Calls, close_the_rsocket_whose_number_a_copy_takes) {
  const Fd event(::eventfd(7, EFD_CLOEXEC));
  EXPECT_EQ(::dup2(event.get(), to()), to());
  EXPECT_FALSE(is_rsocket(to()));
  wait_for(from(), POLLIN);
  char byte;
  EXPECT_EQ(::read(from(), &byte, 1), 0) << "the peer sees the end";
}

TEST_F(Calls, refuse_copies_of_an_rsocket) {
  for (const int copy : {::dup(from()), ::dup2(from(), 100), ::dup3(from(), 100, O_CLOEXEC)}) {
    EXPECT_EQ(copy, -1);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
  EXPECT_EQ(::fcntl(from(), F_DUPFD, 0), -1);
}

TEST_F(Calls, let_a_child_close_what_is_its_parent_s) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::close(client.get()) == 0 && ::close(listener.get()) == 0 ? 0 : 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  send_and_wait("still here");
  EXPECT_EQ(received(10), "still here");
}

}  // namespace
}  // namespace weir::rspreload
