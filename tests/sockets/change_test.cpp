// Programs of plain sockets whose connections change between TCP and RDMA. Runs under the preloaded library,
// with and without frequent changes (WEIR_SOCKETS_CHANGE_EVERY).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <thread>
#include <vector>

#include "tests/sockets/change_fixture.hpp"

namespace weir::sockets::test {
namespace {

std::string pattern(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::string all(bytes, '\0');
  for (char& byte : all) byte = static_cast<char>(random());
  return all;
}

TEST_F(Change, large_amounts_arrive_whole_in_both_directions) {
  const std::string there = pattern(3'000'000, 1), back = pattern(2'000'001, 2);
  std::thread sends([&] { EXPECT_TRUE(send_all(pair_.client, there)); });
  std::thread answers([&] { EXPECT_TRUE(send_all(pair_.server, back)); });
  std::thread reads([&] { EXPECT_TRUE(receive(pair_.client, back.size()) == back); });
  EXPECT_TRUE(receive(pair_.server, there.size()) == there);
  sends.join();
  answers.join();
  reads.join();
}

TEST_F(Change, a_writer_gets_as_much_room_as_tcp_has) {
  const std::string all = pattern(300'000, 3);
  ASSERT_TRUE(send_all(pair_.client, all));  // nobody reads meanwhile
  EXPECT_TRUE(receive(pair_.server, all.size()) == all);
}

TEST_F(Change, a_non_blocking_read_of_nothing_says_so) {
  char byte = 0;
  ASSERT_EQ(::recv(pair_.server, &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  ASSERT_EQ(::fcntl(pair_.server, F_SETFL, O_NONBLOCK), 0);
  ASSERT_EQ(::read(pair_.server, &byte, 1), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(Change, peek_takes_nothing_and_ioctl_counts_it) {
  ASSERT_TRUE(send_all(pair_.client, "peeked"));
  ASSERT_TRUE(readable(pair_.server, longest_ms));
  std::array<char, 16> bytes{};
  ASSERT_GT(::recv(pair_.server, bytes.data(), bytes.size(), MSG_PEEK), 0);
  int unread = 0;
  ASSERT_EQ(::ioctl(pair_.server, FIONREAD, &unread), 0);
  EXPECT_GT(unread, 0);
  EXPECT_EQ(receive(pair_.server, 6), "peeked");
}

TEST_F(Change, a_call_that_succeeds_leaves_errno_alone) {
  for (int i = 0; i < 100; ++i) {
    errno = EXDEV;
    ASSERT_TRUE(send_all(pair_.client, a_question));
    ASSERT_EQ(receive(pair_.server, a_question.size()), a_question);
    ASSERT_EQ(errno, EXDEV);
  }
}

TEST_F(Change, a_timeout_ends_a_blocking_read) {
  const timeval limit{.tv_sec = 0, .tv_usec = 20'000};
  ASSERT_EQ(::setsockopt(pair_.server, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  char byte = 0;
  EXPECT_EQ(::recv(pair_.server, &byte, 1, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(Change, pieces_are_gathered_and_scattered) {
  std::string first = "first ", second = "second";
  const std::array<iovec, 3> from{
      {{first.data(), first.size()}, {nullptr, 0}, {second.data(), second.size()}}};
  ASSERT_EQ(::writev(pair_.client, from.data(), 3), 12);
  std::array<char, 5> head{};
  std::array<char, 7> tail{};
  std::array<iovec, 2> into{{{head.data(), head.size()}, {tail.data(), tail.size()}}};
  msghdr message{};
  message.msg_iov = into.data();
  message.msg_iovlen = into.size();
  ASSERT_EQ(::recvmsg(pair_.server, &message, MSG_WAITALL), 12);
  EXPECT_EQ(std::string(head.data(), 5) + std::string(tail.data(), 7), "first second");
}

TEST_F(Change, a_sleeping_reader_is_woken) {
  std::thread reads([&] { EXPECT_EQ(receive(pair_.server, 4), "wake"); });
  std::this_thread::yield();
  ASSERT_TRUE(send_all(pair_.client, "wake"));
  reads.join();
}

TEST_F(Change, select_sees_what_came_by_the_ring) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(pair_.server, &set);
  timeval at_once{};
  EXPECT_EQ(::select(pair_.server + 1, &set, nullptr, nullptr, &at_once), 0);
  ASSERT_TRUE(send_all(pair_.client, "x"));
  FD_ZERO(&set);
  FD_SET(pair_.server, &set);
  timeval limit{.tv_sec = 10, .tv_usec = 0};
  EXPECT_EQ(::select(pair_.server + 1, &set, nullptr, nullptr, &limit), 1);
  EXPECT_TRUE(FD_ISSET(pair_.server, &set));
}

struct Interest {
  const char* what;
  std::uint32_t events;
  int again;  // reported once more without a read
};

TEST_F(Change, epoll_keeps_level_edge_and_one_shot) {
  for (const Interest& row : {Interest{"level", EPOLLIN, 1},
                              {"edge", EPOLLIN | EPOLLET, 0},
                              {"one shot", EPOLLIN | EPOLLONESHOT, 0}}) {
    SCOPED_TRACE(row.what);
    const int set = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{.events = row.events, .data = {.u64 = 42}};
    ASSERT_EQ(::epoll_ctl(set, EPOLL_CTL_ADD, pair_.server, &event), 0);
    std::array<epoll_event, 4> found{};
    EXPECT_EQ(::epoll_wait(set, found.data(), 4, 0), 0);
    std::thread sends([&] { EXPECT_TRUE(send_all(pair_.client, "x")); });
    ASSERT_EQ(::epoll_wait(set, found.data(), 4, longest_ms), 1);
    sends.join();
    EXPECT_EQ(found[0].data.u64, 42u);
    EXPECT_NE(found[0].events & EPOLLIN, 0u);
    EXPECT_EQ(::epoll_wait(set, found.data(), 4, 0), row.again);
    if ((row.events & EPOLLONESHOT) != 0) {
      ASSERT_EQ(::epoll_ctl(set, EPOLL_CTL_MOD, pair_.server, &event), 0);
      EXPECT_EQ(::epoll_wait(set, found.data(), 4, longest_ms), 1);
    }
    EXPECT_EQ(receive(pair_.server, 1), "x");
    ::close(set);
  }
}

TEST_F(Change, epoll_tells_of_what_lies_in_the_ring_behind_bytes_of_tcp) {
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 1}};
  ASSERT_EQ(::epoll_ctl(set, EPOLL_CTL_ADD, pair_.server, &event), 0);
  constexpr std::size_t piece = 40, pieces = 8;  // more than one change of carriers, where there are any
  for (int round = 0; round < 200; ++round) {
    for (std::size_t i = 0; i < pieces; ++i) ASSERT_TRUE(send_all(pair_.client, std::string(piece, 'x')));
    std::array<char, 200> bytes{};
    for (std::size_t have = 0; have < piece * pieces;) {
      epoll_event found{};
      ASSERT_EQ(::epoll_wait(set, &found, 1, longest_ms), 1) << "round " << round << ", behind byte " << have;
      const ssize_t got = ::recv(pair_.server, bytes.data(), bytes.size(), MSG_DONTWAIT);
      ASSERT_GT(got, 0);
      have += static_cast<std::size_t>(got);
    }
  }
  ::close(set);
}

TEST_F(Change, an_epoll_set_in_poll_and_in_another_set_wakes) {
  const int inner = ::epoll_create1(EPOLL_CLOEXEC), outer = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 7}};
  ASSERT_EQ(::epoll_ctl(inner, EPOLL_CTL_ADD, pair_.server, &event), 0);
  ASSERT_EQ(::epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event), 0);
  for (int round = 0; round < 3; ++round) {
    std::thread sends([&] { EXPECT_TRUE(send_all(pair_.client, "x")); });
    std::array<epoll_event, 2> found{};
    EXPECT_EQ(::epoll_wait(outer, found.data(), 2, longest_ms), 1);
    EXPECT_TRUE(readable(inner, longest_ms));
    EXPECT_EQ(::epoll_wait(inner, found.data(), 2, longest_ms), 1);
    EXPECT_EQ(receive(pair_.server, 1), "x");
    sends.join();
    EXPECT_EQ(::epoll_wait(inner, found.data(), 2, 0), 0);
  }
  ::close(inner);
  ::close(outer);
}

TEST_F(Change, a_set_in_a_set_wakes_for_each_message_although_nobody_looks_into_it_twice) {
  const int inner = ::epoll_create1(EPOLL_CLOEXEC), outer = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 7}};
  ASSERT_EQ(::epoll_ctl(inner, EPOLL_CTL_ADD, pair_.server, &event), 0);
  ASSERT_EQ(::epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event), 0);
  for (int round = 0; round < 100; ++round) {
    ASSERT_TRUE(send_all(pair_.client, "x"));
    std::array<epoll_event, 2> found{};
    int inside = 0;
    while (inside == 0) {
      ASSERT_EQ(::epoll_wait(outer, found.data(), 2, longest_ms), 1) << "round " << round;
      inside = ::epoll_wait(inner, found.data(), 2, 0);
    }
    ASSERT_EQ(inside, 1);
    ASSERT_EQ(receive(pair_.server, 1), "x");
  }
  ::close(inner);
  ::close(outer);
}

struct Copying {
  const char* what;
  int (*copy)(int fd);
};

TEST_F(Change, a_copy_of_the_descriptor_is_the_same_stream) {
  constexpr int number = 777;
  for (const Copying& row :
       {Copying{"dup", [](int fd) { return ::dup(fd); }},
        {"dup2", [](int fd) { return ::dup2(fd, number); }},
        {"dup3", [](int fd) { return ::dup3(fd, number, O_CLOEXEC); }},
        {"F_DUPFD", [](int fd) { return ::fcntl(fd, F_DUPFD, number); }},
        {"F_DUPFD_CLOEXEC", [](int fd) { return ::fcntl(fd, F_DUPFD_CLOEXEC, number); }}}) {
    SCOPED_TRACE(row.what);
    const int copy = row.copy(pair_.server);
    ASSERT_GE(copy, 0);
    ASSERT_TRUE(send_all(pair_.client, "one two"));
    EXPECT_EQ(receive(copy, 4), "one ");
    ::close(pair_.server);
    pair_.server = copy;
    EXPECT_EQ(receive(copy, 3), "two");
    ASSERT_TRUE(send_all(copy, "back"));
    EXPECT_EQ(receive(pair_.client, 4), "back");
    pair_.server = ::fcntl(copy, F_DUPFD_CLOEXEC, 0);  // the number is free for the next row
    ::close(copy);
  }
}

TEST_F(Change, half_close_ends_one_direction_behind_its_last_byte) {
  ASSERT_TRUE(send_all(pair_.client, "last words"));
  ASSERT_EQ(::shutdown(pair_.client, SHUT_WR), 0);
  EXPECT_EQ(receive(pair_.server, 100), "last words");
  ASSERT_TRUE(send_all(pair_.server, "answer"));
  EXPECT_EQ(receive(pair_.client, 6), "answer");
}

TEST_F(Change, a_closed_peer_is_an_end_and_then_a_broken_pipe) {
  ASSERT_TRUE(send_all(pair_.client, "bye"));
  ::close(std::exchange(pair_.client, -1));
  EXPECT_EQ(receive(pair_.server, 100), "bye");
  bool refused = false;
  for (int i = 0; i < 100 && !refused; ++i) refused = !send_all(pair_.server, "anybody there?");
  EXPECT_TRUE(refused);
  EXPECT_TRUE(errno == EPIPE || errno == ECONNRESET) << errno;
}

TEST_F(Change, a_peer_that_closes_unread_bytes_resets) {
  ASSERT_TRUE(send_all(pair_.client, "never read"));
  ASSERT_TRUE(readable(pair_.server, longest_ms));
  ::close(std::exchange(pair_.server, -1));
  ASSERT_TRUE(readable(pair_.client, longest_ms));
  char byte = 0;
  EXPECT_EQ(::recv(pair_.client, &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(Change, a_forked_child_goes_on_with_the_stream) {
  ASSERT_TRUE(send_all(pair_.client, "for the child"));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool got = receive(pair_.server, 13) == "for the child" &&
                     send_all(pair_.server, "from the child") && receive(pair_.server, 5) == "again" &&
                     send_all(pair_.server, "and again");
    ::_exit(got ? 0 : 1);
  }
  ::close(std::exchange(pair_.server, -1));
  EXPECT_EQ(receive(pair_.client, 14), "from the child");
  ASSERT_TRUE(send_all(pair_.client, "again"));
  EXPECT_EQ(receive(pair_.client, 9), "and again");
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(receive(pair_.client, 1), "");
}

TEST_F(Change, a_parent_goes_on_while_its_child_does_nothing) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  for (int i = 0; i < 100; ++i) exchange(pair_);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  for (int i = 0; i < 100; ++i) exchange(pair_);
}

TEST_F(Change, a_program_that_is_executed_gets_what_was_not_read) {
  ASSERT_TRUE(send_all(pair_.client, "unread, "));
  ASSERT_TRUE(readable(pair_.server, longest_ms));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::dup2(pair_.server, 0);
    ::dup2(pair_.server, 1);
    ::execl("/bin/cat", "cat", nullptr);
    ::_exit(1);
  }
  ::close(std::exchange(pair_.server, -1));
  ASSERT_TRUE(send_all(pair_.client, "and more"));
  ASSERT_EQ(::shutdown(pair_.client, SHUT_WR), 0);
  EXPECT_EQ(receive(pair_.client, 100), "unread, and more");
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(Change, a_descriptor_passed_to_another_process_carries_the_stream) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  char byte = 0;
  iovec content{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (child == 0) {
    ::close(pair_.server);
    ::close(pair_.client);
    if (::recvmsg(ends[1], &message, 0) != 1) ::_exit(2);
    int passed = -1;
    std::memcpy(&passed, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof passed);
    ::_exit(receive(passed, 6) == "unread" && send_all(passed, "passed") ? 0 : 1);
  }
  ASSERT_TRUE(send_all(pair_.client, "unread"));
  ASSERT_TRUE(readable(pair_.server, longest_ms));
  cmsghdr* const part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(part), &pair_.server, sizeof pair_.server);
  ASSERT_EQ(::sendmsg(ends[0], &message, 0), 1);
  ::close(std::exchange(pair_.server, -1));
  EXPECT_EQ(receive(pair_.client, 6), "passed");
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(Change, urgent_data_comes_by_tcp) {
  ASSERT_EQ(::send(pair_.client, "!", 1, MSG_OOB), 1);
  pollfd one{pair_.server, POLLPRI, 0};
  ASSERT_EQ(::poll(&one, 1, longest_ms), 1);
  char byte = 0;
  EXPECT_EQ(::recv(pair_.server, &byte, 1, MSG_OOB), 1);
  EXPECT_EQ(byte, '!');
  exchange(pair_);
}

struct ForTcpAlone {
  const char* what;
  void (*ask)(int fd);  // a kernel may refuse it
};

template <class Value>
void set(int fd, int level, int name, Value value) {
  (void)::setsockopt(fd, level, name, &value, sizeof value);
}

TEST_F(Change, what_tcp_alone_can_honour_brings_the_bytes_back_to_tcp) {
  for (const ForTcpAlone& row :
       {ForTcpAlone{"SO_RCVLOWAT", [](int fd) { set(fd, SOL_SOCKET, SO_RCVLOWAT, 2); }},
        {"SO_ZEROCOPY", [](int fd) { set(fd, SOL_SOCKET, SO_ZEROCOPY, 1); }},
        {"SO_TIMESTAMPING", [](int fd) { set(fd, SOL_SOCKET, SO_TIMESTAMPING, 0); }},
        {"SO_PEEK_OFF", [](int fd) { set(fd, SOL_SOCKET, SO_PEEK_OFF, -1); }},
        {"TCP_ULP", [](int fd) { (void)::setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", 3); }},
        {"F_SETOWN", [](int fd) { ::fcntl(fd, F_SETOWN, ::getpid()); }},
        {"O_ASYNC",
         [](int fd) {
           ::signal(SIGIO, SIG_IGN);
           const int flags = ::fcntl(fd, F_GETFL);
           ::fcntl(fd, F_SETFL, flags | O_ASYNC);
           ::fcntl(fd, F_SETFL, flags);
         }},
        {"MSG_ZEROCOPY", [](int fd) {
           EXPECT_EQ(::send(fd, "z", 1, MSG_ZEROCOPY), 1);  // without SO_ZEROCOPY it copies
         }}}) {
    SCOPED_TRACE(row.what);
    TcpPair pair;
    ASSERT_NO_FATAL_FAILURE(warm_up(pair));
    row.ask(pair.client);
    if (std::string_view(row.what) == "MSG_ZEROCOPY") {
      ASSERT_EQ(receive(pair.server, 1), "z");
    }
    const auto before = bytes_by_tcp(pair.client);
    exchange(pair);
    exchange(pair);
    EXPECT_GT(bytes_by_tcp(pair.client), before);
  }
}

TEST_F(Change, names_options_and_counters_are_the_kernels) {
  struct Option {
    int level, name, value;
  };
  for (const Option& row : {Option{SOL_SOCKET, SO_KEEPALIVE, 1},
                            {IPPROTO_TCP, TCP_NODELAY, 1},
                            {IPPROTO_TCP, TCP_KEEPIDLE, 77},
                            {IPPROTO_TCP, TCP_USER_TIMEOUT, 12'345},
                            {SOL_SOCKET, SO_PRIORITY, 3}}) {
    ASSERT_EQ(::setsockopt(pair_.client, row.level, row.name, &row.value, sizeof row.value), 0) << row.name;
    int now = 0;
    socklen_t size = sizeof now;
    ASSERT_EQ(::getsockopt(pair_.client, row.level, row.name, &now, &size), 0) << row.name;
    EXPECT_EQ(now, row.value) << row.name;
  }
  sockaddr_in own{}, peers{};
  socklen_t size = sizeof own;
  ASSERT_EQ(::getsockname(pair_.client, reinterpret_cast<sockaddr*>(&own), &size), 0);
  ASSERT_EQ(::getpeername(pair_.server, reinterpret_cast<sockaddr*>(&peers), &size), 0);
  EXPECT_EQ(own.sin_port, peers.sin_port);
  tcp_info info{};
  size = sizeof info;
  ASSERT_EQ(::getsockopt(pair_.client, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
  constexpr int established = 1;
  EXPECT_EQ(info.tcpi_state, established);
  exchange(pair_);
}

TEST_F(Change, tcp_carries_no_byte_that_the_program_did_not_write) {
  TcpPair pair;
  for (std::uint64_t i = 1; i <= 300; ++i) {
    exchange(pair);
    ASSERT_LE(bytes_by_tcp(pair.client), a_question.size() * i);
    ASSERT_LE(bytes_by_tcp(pair.server), an_answer.size() * i);
    // A short connection is the kernel's alone.
    if (i == 1 && !changes_at_random()) {
      EXPECT_EQ(bytes_by_tcp(pair.client), a_question.size());
      EXPECT_EQ(bytes_by_tcp(pair.server), an_answer.size());
    }
  }
}

TEST_F(Change, threads_on_one_descriptor_lose_nothing) {
  constexpr int writers = 4, each = 2000;
  std::vector<std::thread> all;
  for (int i = 0; i < writers; ++i)
    all.emplace_back([&] {
      for (int k = 0; k < each; ++k) EXPECT_TRUE(send_all(pair_.client, "12345678"));
    });
  const std::string got = receive(pair_.server, std::size_t{writers} * each * 8);
  for (auto& one : all) one.join();
  ASSERT_EQ(got.size(), std::size_t{writers} * each * 8);
  for (std::size_t i = 0; i < got.size(); i += 8) ASSERT_EQ(got.substr(i, 8), "12345678");
}

}  // namespace
}  // namespace weir::sockets::test
