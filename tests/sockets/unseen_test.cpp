// Signal handlers in the middle of a call, and system calls that bypass the C library's functions. Runs under
// the preloaded library, like change_test.cpp.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/sockets/change_fixture.hpp"

namespace weir::sockets::test {
namespace {

using Unseen = Change;

// A handler of SIGUSR1 that sends a record of its own on the connection that its thread is just using.
std::atomic<int> handlers_connection{-1}, handlers_records{0};

TEST_F(Unseen, a_signal_handler_uses_the_connection_that_it_interrupts) {
  constexpr int records = 20'000;
  struct sigaction action{}, before{};
  action.sa_flags = SA_RESTART;
  action.sa_handler = [](int) {
    if (::send(handlers_connection, "handler.", 8, MSG_NOSIGNAL) == 8) ++handlers_records;
  };
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  handlers_connection = pair_.client;
  handlers_records = 0;
  std::atomic<bool> over{false};
  std::thread reads([&] {
    const std::string all = receive(pair_.server, std::size_t{records} * 16);
    int own = 0, handlers = 0;
    for (std::size_t i = 0; i + 8 <= all.size(); i += 8) {
      own += all.compare(i, 8, "program.") == 0 ? 1 : 0;
      handlers += all.compare(i, 8, "handler.") == 0 ? 1 : 0;
    }
    EXPECT_EQ(own, records);
    EXPECT_EQ(handlers, handlers_records);
    EXPECT_EQ(all.size(), (static_cast<std::size_t>(own + handlers)) * 8);
  });
  const pthread_t sender = ::pthread_self();
  std::thread signals([&] {
    for (int sent = 0; !over && sent < records; ++sent) {
      const int had = handlers_records;
      ::pthread_kill(sender, SIGUSR1);
      while (!over && handlers_records == had) std::this_thread::yield();
    }
  });
  for (int i = 0; i < records; ++i) EXPECT_TRUE(send_all(pair_.client, "program."));
  over = true;
  signals.join();
  EXPECT_GT(handlers_records, 0);
  ASSERT_EQ(::shutdown(pair_.client, SHUT_WR), 0);
  reads.join();
  ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
}

TEST_F(Unseen, what_a_program_asks_about_its_handlers_is_what_it_said) {
  struct sigaction action{}, now{};
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  action.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR2, &action, nullptr), 0);
  ASSERT_EQ(::sigaction(SIGUSR2, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, action.sa_handler);
  EXPECT_EQ(static_cast<unsigned>(now.sa_flags) & ~0x0400'0000u, static_cast<unsigned>(action.sa_flags));
  ASSERT_EQ(::raise(SIGUSR2), 0);
  ASSERT_EQ(::sigaction(SIGUSR2, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_DFL) << "SA_RESETHAND";
  EXPECT_EQ(::signal(SIGUSR2, action.sa_handler), SIG_DFL);
  EXPECT_EQ(::signal(SIGUSR2, SIG_IGN), action.sa_handler);
  EXPECT_EQ(::signal(SIGUSR2, SIG_DFL), SIG_IGN);
}

jmp_buf way_out;

TEST_F(Unseen, a_handler_that_jumps_out_leaves_a_connection_that_works) {
  struct sigaction action{};
  action.sa_flags = static_cast<int>(SA_NODEFER);
  action.sa_handler = [](int) { ::longjmp(way_out, 1); };
  ASSERT_EQ(::sigaction(SIGALRM, &action, nullptr), 0);
  for (int round = 0; round < 200; ++round) {
    if (::setjmp(way_out) == 0) {
      const itimerval soon{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 200 + round}};
      ASSERT_EQ(::setitimer(ITIMER_REAL, &soon, nullptr), 0);
      for (;;) {
        char byte = 'x';
        ASSERT_EQ(::send(pair_.client, &byte, 1, 0), 1);
        ASSERT_EQ(::recv(pair_.server, &byte, 1, 0), 1);
      }
    }
    // A byte may be on its way still.
    ASSERT_TRUE(send_all(pair_.client, "|"));
    for (char byte = 0; byte != '|';) ASSERT_EQ(::recv(pair_.server, &byte, 1, 0), 1);
    exchange(pair_);
    if (HasFatalFailure()) return;
  }
  ::signal(SIGALRM, SIG_DFL);
}

// Opens files until one has `number`, or a higher one. The library's own thread opens and closes files
// meanwhile, so lower numbers may become free at any time. Returns the last file.
template <class Open>
int open_as(int number, std::vector<int>& below, Open open) {
  for (;;) {
    const int fd = open();
    if (fd < 0 || fd >= number) return fd;
    below.push_back(fd);
  }
}

TEST_F(Unseen, system_calls_by_number_are_calls_like_any_other) {
  ASSERT_EQ(::syscall(SYS_write, pair_.client, "numbers", 7), 7);
  ASSERT_TRUE(readable(pair_.server, longest_ms));
  std::array<char, 8> bytes{};
  EXPECT_EQ(::syscall(SYS_recvfrom, pair_.server, bytes.data(), bytes.size(), 0, nullptr, nullptr), 7);
  EXPECT_STREQ(bytes.data(), "numbers");
  const auto copy = static_cast<int>(::syscall(SYS_dup, pair_.client));
  ASSERT_TRUE(send_all(copy, "copy"));
  EXPECT_EQ(receive(pair_.server, 4), "copy");
  EXPECT_EQ(::syscall(SYS_close_range, copy, copy, 0), 0);
  exchange(pair_);
}

TEST_F(Unseen, a_number_closed_by_an_instruction_is_another_files_then) {
  ASSERT_TRUE(send_all(pair_.client, "never read"));
  ASSERT_TRUE(readable(pair_.server, longest_ms));
  const int number = pair_.server;
  std::vector<int> below;
  ASSERT_EQ(by_instruction(SYS_close, number), 0);
  // A socket gets the number: what we did for the connection must not be done to it.
  ASSERT_EQ(open_as(number, below, [] { return ::socket(AF_INET, SOCK_STREAM, 0); }), number);
  linger at_end{};
  socklen_t size = sizeof at_end;
  ASSERT_EQ(::getsockopt(number, SOL_SOCKET, SO_LINGER, &at_end, &size), 0);
  EXPECT_EQ(at_end.l_onoff, 0);
  for (const int fd : below) ::close(fd);
}

// While the connection sends by TCP, as after a full ring.
TEST_F(Unseen, bytes_written_by_an_instruction_keep_the_connection_on_tcp) {
  const std::string piece(64 * 1024, 'p');
  std::size_t sent = 0;
  for (ssize_t one = 0; one >= 0; sent += one > 0 ? static_cast<std::size_t>(one) : 0)
    one = ::send(pair_.client, piece.data(), piece.size(), MSG_DONTWAIT);
  ASSERT_EQ(receive(pair_.server, sent).size(), sent);
  ASSERT_EQ(by_instruction(SYS_write, pair_.client, reinterpret_cast<long>("unseen"), 6), 6);
  ASSERT_TRUE(send_all(pair_.client, ", seen"));
  EXPECT_EQ(receive(pair_.server, 12), "unseen, seen");
  const std::uint64_t before = written_to_tcp(pair_.client);
  exchange(pair_);
  EXPECT_GT(written_to_tcp(pair_.client), before);
}

TEST_F(Unseen, a_file_with_the_number_of_a_connection_is_that_file) {
  const int number = pair_.server;
  std::vector<int> below;
  ASSERT_EQ(by_instruction(SYS_close, number), 0);
  ASSERT_EQ(open_as(number, below, [] { return ::open("/dev/zero", O_RDWR | O_CLOEXEC); }), number);
  char byte = 1;
  EXPECT_EQ(::read(number, &byte, 1), 1);
  EXPECT_EQ(byte, 0);
  EXPECT_EQ(::write(number, &byte, 1), 1);
  for (const int fd : below) ::close(fd);
}

}  // namespace
}  // namespace weir::sockets::test
