// A peer in another process that is killed or stopped in the middle. Runs under the preloaded library.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/sockets/tcp_pair.hpp"

namespace weir::sockets::test {
namespace {

constexpr std::string_view question = "twenty bytes or more?", answer = "yes, twenty or more.";

constexpr std::string_view makes_ring = "make an io_uring now!";
constexpr int no_io_uring = 77;

// Reads as the kernel's ring would: the socket's own bytes.
int make_ring_and_read(int fd) {
  std::array<std::uint32_t, 30> parameters{};
  const bool made = ::syscall(SYS_io_uring_setup, 4, parameters.data()) >= 0;
  if (!send_all(fd, "m") || !made) return made ? 1 : no_io_uring;
  std::array<char, 32> bytes{};
  for (std::size_t have = 0; have < 15;) {
    const long got = by_instruction(SYS_read, fd, reinterpret_cast<long>(bytes.data() + have),
                                    static_cast<long>(bytes.size() - have));
    if (got <= 0) return 2;
    have += static_cast<std::size_t>(got);
  }
  return std::string_view(bytes.data()) == "unread and more" ? 0 : 3;
}

constexpr std::string_view filters_calls = "filter my calls, now!";
constexpr int no_filter = 77;

// As a program of few calls does once it is ready: any other kills it.
bool filter_all_but_usual_calls() {
  constexpr std::array usual{SYS_read,   SYS_write, SYS_recvfrom, SYS_sendto, SYS_close, SYS_exit_group,
                             SYS_munmap, SYS_brk,   SYS_mmap,     SYS_futex,  SYS_fstat, SYS_newfstatat};
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const long call : usual) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  const sock_fprog whole{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) == 0;
}

int filter_calls_and_read(int fd) {
  if (!filter_all_but_usual_calls()) return no_filter;
  if (::write(fd, "m", 1) != 1) return 1;
  std::array<char, 32> bytes{};
  for (std::size_t have = 0; have < 15;) {
    const ssize_t got = ::read(fd, bytes.data() + have, bytes.size() - have);
    if (got <= 0) return 2;
    have += static_cast<std::size_t>(got);
  }
  ::close(fd);
  return std::string_view(bytes.data()) == "unread and more" ? 0 : 3;
}

// Answers questions, all of the same length.
[[noreturn]] void serve_in_child(const sockaddr_in& address) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) ::_exit(1);
  for (;;) {
    const std::string asked = receive(fd, question.size());
    if (asked == makes_ring) ::_exit(make_ring_and_read(fd));
    if (asked == filters_calls) std::exit(filter_calls_and_read(fd));  // with the handlers of exit()
    if (asked != question) ::_exit(0);
    if (!send_all(fd, answer)) ::_exit(0);
  }
}

class LostPeer : public ::testing::Test {
 protected:
  void SetUp() override {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(::listen(listener, 1), 0);
    ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) serve_in_child(address);
    fd_ = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    ASSERT_GE(fd_, 0);
    ::close(listener);
    // By TCP the child's bytes are counted here when they come; by the ring neither count moves. With a
    // change every few bytes the two directions need not be on the ring at once, and either carrier will do.
    int exchanges_left = std::getenv("WEIR_SOCKETS_CHANGE_EVERY") != nullptr ? 200 : -1;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (bool moved = true; moved && exchanges_left != 0;) {
      if (exchanges_left > 0) --exchanges_left;
      ASSERT_LT(std::chrono::steady_clock::now(), until) << "the connection stayed on TCP";
      const auto before = bytes_by_tcp(fd_) + received_by_tcp();
      ask();
      if (HasFatalFailure()) return;
      moved = bytes_by_tcp(fd_) + received_by_tcp() != before;
    }
  }
  void TearDown() override {
    if (fd_ >= 0) ::close(fd_);
    if (child_ < 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  std::uint64_t received_by_tcp() const {
    tcp_info info{};
    socklen_t size = sizeof info;
    EXPECT_EQ(::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    return info.tcpi_bytes_received;
  }
  void ask() const {
    ASSERT_TRUE(send_all(fd_, question));
    ASSERT_EQ(receive(fd_, answer.size()), answer);
  }
  void kill_child() const {
    ASSERT_EQ(::kill(child_, SIGKILL), 0);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOWAIT), 0);
  }

  int fd_ = -1;
  pid_t child_ = -1;
};

TEST_F(LostPeer, a_killed_peer_is_the_end_for_a_reader) {
  kill_child();
  char byte = 0;
  const ssize_t got = ::recv(fd_, &byte, 1, 0);
  EXPECT_TRUE(got == 0 || (got < 0 && errno == ECONNRESET)) << got << " " << errno;
}

TEST_F(LostPeer, a_killed_peer_wakes_an_epoll_set_a_poll_and_a_blocked_reader) {
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.u64 = 5}}, found{};
  ASSERT_EQ(::epoll_ctl(set, EPOLL_CTL_ADD, fd_, &event), 0);
  ASSERT_EQ(::epoll_wait(set, &found, 1, 0), 0);
  std::thread reads([&] {
    char byte = 0;
    EXPECT_LE(::recv(fd_, &byte, 1, 0), 0);
  });
  std::thread polls([&] { EXPECT_TRUE(readable(fd_, longest_ms)); });
  ASSERT_EQ(::kill(child_, SIGKILL), 0);
  EXPECT_EQ(::epoll_wait(set, &found, 1, longest_ms), 1);
  EXPECT_NE(found.events & EPOLLRDHUP, 0u);
  reads.join();
  polls.join();
  ::close(set);
}

TEST_F(LostPeer, what_a_killed_peer_sent_is_still_read) {
  ASSERT_TRUE(send_all(fd_, question));
  ASSERT_TRUE(readable(fd_, longest_ms));
  kill_child();
  EXPECT_EQ(receive(fd_, answer.size()), answer);
}

TEST_F(LostPeer, writes_to_a_killed_peer_fail_soon) {
  kill_child();
  bool refused = false;
  for (int i = 0; i < 100'000 && !refused; ++i) refused = !send_all(fd_, question);
  EXPECT_TRUE(refused);
  EXPECT_TRUE(errno == EPIPE || errno == ECONNRESET) << errno;
}

TEST_F(LostPeer, a_stopped_peer_keeps_nobody_who_does_not_want_to_wait) {
  ASSERT_EQ(::kill(child_, SIGSTOP), 0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child_), &info, WSTOPPED | WNOWAIT), 0);
  const std::string much(1 << 16, 'x');
  std::size_t taken = 0;
  ssize_t sent = 0;
  while ((sent = ::send(fd_, much.data(), much.size(), MSG_DONTWAIT)) > 0)
    taken += static_cast<std::size_t>(sent);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_GT(taken, std::size_t{1} << 17) << "less than TCP buffers";
  char byte = 0;
  EXPECT_EQ(::recv(fd_, &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  ASSERT_EQ(::kill(child_, SIGCONT), 0);
}

TEST_F(LostPeer, a_peer_that_goes_on_after_a_stop_goes_on_with_the_stream) {
  ASSERT_EQ(::kill(child_, SIGSTOP), 0);
  std::size_t questions = 0;
  while (questions < 20'000 &&
         ::send(fd_, question.data(), question.size(), MSG_DONTWAIT) == static_cast<ssize_t>(question.size()))
    ++questions;
  ASSERT_EQ(::kill(child_, SIGCONT), 0);
  for (std::size_t i = 0; i < questions; ++i) ASSERT_EQ(receive(fd_, answer.size()), answer);
}

TEST_F(LostPeer, a_process_that_makes_an_io_uring_gets_all_bytes_by_tcp) {
  static_assert(makes_ring.size() == question.size());
  ASSERT_TRUE(send_all(fd_, std::string(makes_ring) + "unread"));
  ASSERT_EQ(receive(fd_, 1), "m");
  ASSERT_TRUE(send_all(fd_, " and more"));
  int status = 0;
  ASSERT_EQ(::waitpid(child_, &status, 0), child_);
  child_ = -1;
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == no_io_uring) GTEST_SKIP() << "no io_uring here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// It reads what was in the ring, and neither the calls on its connection nor its end kill it.
TEST_F(LostPeer, a_process_that_filters_its_calls_lives_and_gets_all_bytes) {
  static_assert(filters_calls.size() == question.size());
  ASSERT_TRUE(send_all(fd_, std::string(filters_calls) + "unread"));
  ASSERT_EQ(receive(fd_, 1), "m");
  ASSERT_TRUE(send_all(fd_, " and more"));
  int status = 0;
  ASSERT_EQ(::waitpid(child_, &status, 0), child_);
  child_ = -1;
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == no_filter) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace weir::sockets::test
