// Once a connection has changed, no system call carries its bytes, and a peer that the library does not see
// has plain TCP. Runs under the preloaded library.
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <thread>
#include <vector>

#include "tests/sockets/change_fixture.hpp"

namespace weir::sockets::test {
namespace {

using SteadyState = Change;

// From now on these system calls fail in this thread. False: no filters here. By an instruction, past the
// library: it steps aside where it sees a filter coming.
bool forbid(const std::vector<unsigned>& calls) {
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const unsigned call : calls) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{.len = static_cast<unsigned short>(program.size()), .filter = program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         by_instruction(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, reinterpret_cast<long>(&filter)) == 0;
}

TEST_F(SteadyState, no_system_call_that_sends_or_receives_is_made) {
  if (changes_at_random()) GTEST_SKIP() << "it changes to TCP on purpose";
  std::thread talks([&] {
    if (!forbid({SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_write, SYS_writev, SYS_recvfrom, SYS_recvmsg,
                 SYS_recvmmsg, SYS_read, SYS_readv}))
      GTEST_SKIP() << "no filters of system calls here";
    EXPECT_EQ(by_instruction(SYS_read, -1, 0), -EPERM);
    for (int i = 0; i < 1000 && !HasFatalFailure(); ++i) exchange(pair_);
  });
  talks.join();
}

TEST_F(SteadyState, an_epoll_set_changes_and_answers_without_a_system_call) {
  if (changes_at_random()) GTEST_SKIP() << "it changes to TCP on purpose";
  std::thread talks([&] {
    const int set = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{.events = EPOLLIN, .data = {.u64 = 1}}, found{};
    ASSERT_EQ(::epoll_ctl(set, EPOLL_CTL_ADD, pair_.server, &event), 0);
    ASSERT_EQ(::epoll_wait(set, &found, 1, 0), 0);
    if (!forbid({SYS_epoll_ctl, SYS_poll, SYS_ppoll, SYS_recvfrom, SYS_recvmsg, SYS_sendto, SYS_sendmsg}))
      GTEST_SKIP() << "no filters of system calls here";
    EXPECT_EQ(by_instruction(SYS_epoll_ctl, -1, 0, 0), -EPERM);
    for (int i = 0; i < 100; ++i) {  // as redis-benchmark does
      event.events = EPOLLIN;
      ASSERT_TRUE(send_all(pair_.client, a_question));
      ASSERT_EQ(::epoll_wait(set, &found, 1, longest_ms), 1);
      ASSERT_EQ(found.events, unsigned{EPOLLIN});
      ASSERT_EQ(receive(pair_.server, a_question.size()), a_question);
      ASSERT_EQ(::epoll_ctl(set, EPOLL_CTL_DEL, pair_.server, &event), 0);
      event.events = EPOLLOUT;
      ASSERT_EQ(::epoll_ctl(set, EPOLL_CTL_ADD, pair_.server, &event), 0);
      ASSERT_EQ(::epoll_wait(set, &found, 1, longest_ms), 1);
      ASSERT_EQ(found.events, unsigned{EPOLLOUT});
      ASSERT_TRUE(send_all(pair_.server, an_answer));
      ASSERT_EQ(receive(pair_.client, an_answer.size()), an_answer);
      event.events = EPOLLIN | EPOLLOUT;
      ASSERT_EQ(::epoll_ctl(set, EPOLL_CTL_MOD, pair_.server, &event), 0);
      event.events = EPOLLIN;
      ASSERT_EQ(::epoll_ctl(set, EPOLL_CTL_MOD, pair_.server, &event), 0);
    }
    ::close(set);
  });
  talks.join();
}

// As a program does that makes its system calls itself.
int connected_past_the_library(const sockaddr_in& address) {
  const auto fd = static_cast<int>(by_instruction(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const long result =
      by_instruction(SYS_connect, fd, reinterpret_cast<long>(&address), static_cast<long>(sizeof address));
  return result == 0 ? fd : -1;
}

TEST_F(SteadyState, a_peer_without_the_library_has_plain_tcp) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int peer = connected_past_the_library(address);
  ASSERT_GE(peer, 0);
  const int own = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  ASSERT_GE(own, 0);
  std::array<char, an_answer.size()> bytes{};
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    ASSERT_TRUE(send_all(own, an_answer));
    ASSERT_EQ(written_to_tcp(own), i * an_answer.size());
    std::size_t have = 0;
    while (have < bytes.size()) {
      const long got = by_instruction(SYS_read, peer, reinterpret_cast<long>(bytes.data() + have),
                                      static_cast<long>(bytes.size() - have));
      ASSERT_GT(got, 0);
      have += static_cast<std::size_t>(got);
    }
    ASSERT_EQ(std::string_view(bytes.data(), bytes.size()), an_answer);
    ASSERT_EQ(by_instruction(SYS_write, peer, reinterpret_cast<long>(a_question.data()),
                             static_cast<long>(a_question.size())),
              static_cast<long>(a_question.size()));
    ASSERT_EQ(receive(own, a_question.size()), a_question);
  }
  by_instruction(SYS_close, peer);
  ::close(own);
  ::close(listener);
}

}  // namespace
}  // namespace weir::sockets::test
