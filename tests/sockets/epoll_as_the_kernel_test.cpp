// An epoll set of connections that use their rings reports the same events, call by call, as one with
// connections that the library does not see. Runs under the preloaded library, and with the kernel alone.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "tests/sockets/change_fixture.hpp"

namespace weir::sockets::test {
namespace {

// Past the library.
struct KernelsPair {
  int client, server;

  KernelsPair() : client(open_socket()) {
    const int listener = open_socket();
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener, 1), 0);
    EXPECT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
    EXPECT_EQ(by_instruction(SYS_connect, client, reinterpret_cast<long>(&address), size), 0);
    server = static_cast<int>(by_instruction(SYS_accept, listener));
    EXPECT_GE(server, 0);
    ::close(listener);
  }
  ~KernelsPair() {
    ::close(client);
    ::close(server);
  }
  KernelsPair(const KernelsPair&) = delete;
  KernelsPair& operator=(const KernelsPair&) = delete;

 private:
  static int open_socket() {
    return static_cast<int>(by_instruction(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }
};

int kernels_set() { return static_cast<int>(by_instruction(SYS_epoll_create1, EPOLL_CLOEXEC)); }

std::string text(long result) { return result == 0 ? "0" : strerrorname_np(errno); }

// Takes each step of `script` and returns what each answered. a, m, d: adds, changes, removes the server's
// end with `events`; 0: changes it to no events; s: the client sends 10 bytes; r: the server reads all, p: 4
// of them; f: the client ends its direction; w: waits.
std::string answers(std::string_view script, std::uint32_t events, int set, int client, int server) {
  std::string all;
  std::uint64_t changes = 0;
  const auto control = [&](int operation, std::uint32_t wanted) {
    epoll_event event{.events = wanted, .data = {.u64 = ++changes}};
    return text(::epoll_ctl(set, operation, server, &event));
  };
  std::array<char, 64> bytes{};
  for (const char step : script) {
    if (step == ' ') continue;
    all += step;
    all += ':';
    switch (step) {
      case 'a':
        all += control(EPOLL_CTL_ADD, events);
        break;
      case 'm':
        all += control(EPOLL_CTL_MOD, events);
        break;
      case '0':
        all += control(EPOLL_CTL_MOD, 0);
        break;
      case 'd':
        all += text(::epoll_ctl(set, EPOLL_CTL_DEL, server, nullptr));
        break;
      case 's':
        all += std::to_string(::send(client, "ten bytes.", 10, MSG_NOSIGNAL));
        EXPECT_TRUE(readable(server, longest_ms));
        break;
      case 'p':
        all += std::to_string(::recv(server, bytes.data(), 4, MSG_DONTWAIT));
        break;
      case 'r': {
        ssize_t read = 0;
        for (ssize_t got; (got = ::recv(server, bytes.data(), bytes.size(), MSG_DONTWAIT)) > 0;) read += got;
        all += std::to_string(read);
        break;
      }
      case 'f': {
        all += text(::shutdown(client, SHUT_WR));
        pollfd one{server, POLLRDHUP, 0};
        EXPECT_EQ(::poll(&one, 1, longest_ms), 1);
        break;
      }
      case 'w': {
        std::array<epoll_event, 2> found{};
        const int count = ::epoll_wait(set, found.data(), 2, 0);
        all += std::to_string(count);
        if (count == 1)
          all += "/" + std::to_string(found[0].events) + "/" + std::to_string(found[0].data.u64);
        break;
      }
      default:
        ADD_FAILURE() << step;
    }
    all += ' ';
  }
  return all;
}

struct Wanted {
  const char* what;
  std::uint32_t events;
};

constexpr Wanted all_wanted[] = {{"in", EPOLLIN},
                                 {"in, edge", EPOLLIN | EPOLLET},
                                 {"in, one shot", EPOLLIN | EPOLLONESHOT},
                                 {"in, edge, one shot", EPOLLIN | EPOLLET | EPOLLONESHOT},
                                 {"out", EPOLLOUT},
                                 {"out, edge", EPOLLOUT | EPOLLET},
                                 {"in, out", EPOLLIN | EPOLLOUT},
                                 {"in, out, edge", EPOLLIN | EPOLLOUT | EPOLLET},
                                 {"in, out, one shot", EPOLLIN | EPOLLOUT | EPOLLONESHOT},
                                 {"in, end", EPOLLIN | EPOLLRDHUP},
                                 {"in, end, edge", EPOLLIN | EPOLLRDHUP | EPOLLET},
                                 {"end", EPOLLRDHUP},
                                 {"alone in its turn", EPOLLIN | EPOLLEXCLUSIVE},
                                 {"nothing", 0}};

class EpollAsTheKernel : public Change {
 protected:
  void compare(std::string_view script) {
    for (const Wanted& row : all_wanted) {
      SCOPED_TRACE(row.what);
      TcpPair ours;
      ASSERT_NO_FATAL_FAILURE(warm_up(ours));
      const KernelsPair kernels;
      const int our_set = ::epoll_create1(EPOLL_CLOEXEC), kernel_set = kernels_set();
      EXPECT_EQ(answers(script, row.events, our_set, ours.client, ours.server),
                answers(script, row.events, kernel_set, kernels.client, kernels.server));
      ::close(our_set);
      ::close(kernel_set);
    }
  }
};

TEST_F(EpollAsTheKernel, bytes_are_reported_until_they_are_read) { compare("a w s w w p w w r w w s w r w"); }
TEST_F(EpollAsTheKernel, a_change_reports_what_is_there) { compare("s a w m w w p m w r m w m w"); }
TEST_F(EpollAsTheKernel, no_events_wanted_reports_none) { compare("a s 0 w w m w r 0 s w m w r w"); }
TEST_F(EpollAsTheKernel, a_removed_member_reports_nothing) { compare("a s d w w a w r w d w s w a w r w"); }
TEST_F(EpollAsTheKernel, the_end_is_reported_until_the_close) { compare("a s w f w w r w w m w d w a w w"); }
TEST_F(EpollAsTheKernel, the_end_before_an_add_is_reported) { compare("f a w w m w w"); }
TEST_F(EpollAsTheKernel, wrong_changes_fail) { compare("m d a a w d d m w a w"); }

TEST_F(EpollAsTheKernel, a_copy_of_a_set_is_the_same_set) {
  const int set = ::epoll_create1(EPOLL_CLOEXEC), copy = ::fcntl(set, F_DUPFD_CLOEXEC, 0);
  ASSERT_GE(copy, 0);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 1}}, found{};
  ASSERT_EQ(::epoll_ctl(set, EPOLL_CTL_ADD, pair_.server, &event), 0);
  EXPECT_EQ(::epoll_wait(copy, &found, 1, 0), 0);
  ASSERT_TRUE(send_all(pair_.client, "x"));
  EXPECT_EQ(::epoll_wait(copy, &found, 1, longest_ms), 1);
  ::close(set);
  EXPECT_EQ(::epoll_wait(copy, &found, 1, longest_ms), 1);
  EXPECT_EQ(receive(pair_.server, 1), "x");
  EXPECT_EQ(::epoll_wait(copy, &found, 1, 0), 0);
  event.data.u64 = 2;
  EXPECT_EQ(::epoll_ctl(copy, EPOLL_CTL_MOD, pair_.server, &event), 0);
  ASSERT_TRUE(send_all(pair_.client, "y"));
  EXPECT_EQ(::epoll_wait(copy, &found, 1, longest_ms), 1);
  EXPECT_EQ(found.data.u64, 2u);
  ::close(copy);
}

TEST_F(EpollAsTheKernel, a_set_that_becomes_another_sets_member_wakes_it) {
  const int inner = ::epoll_create1(EPOLL_CLOEXEC), outer = ::epoll_create1(EPOLL_CLOEXEC);
  TcpPair removed;
  ASSERT_NO_FATAL_FAILURE(warm_up(removed));
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 7}}, found{};
  ASSERT_EQ(::epoll_ctl(inner, EPOLL_CTL_ADD, pair_.server, &event), 0);
  ASSERT_EQ(::epoll_ctl(inner, EPOLL_CTL_ADD, removed.server, &event), 0);
  EXPECT_EQ(::epoll_wait(inner, &found, 1, 0), 0);
  ASSERT_EQ(::epoll_ctl(inner, EPOLL_CTL_DEL, removed.server, nullptr), 0);
  ASSERT_EQ(::epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event), 0);
  EXPECT_EQ(::epoll_wait(inner, &found, 1, 0), 0);
  ASSERT_TRUE(send_all(removed.client, "x"));
  ASSERT_TRUE(readable(removed.server, longest_ms));
  EXPECT_EQ(::epoll_wait(outer, &found, 1, 0), 0);
  ASSERT_EQ(::shutdown(pair_.client, SHUT_WR), 0);
  for (int i = 0; i < 3; ++i) {  // a level, so each time
    EXPECT_EQ(::epoll_wait(outer, &found, 1, longest_ms), 1);
    EXPECT_EQ(::epoll_wait(inner, &found, 1, longest_ms), 1);
  }
  ::close(inner);
  ::close(outer);
}

TEST_F(EpollAsTheKernel, a_forked_child_sees_the_end_in_the_set_and_so_does_its_parent) {
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 7}}, found{};
  ASSERT_EQ(::epoll_ctl(set, EPOLL_CTL_ADD, pair_.server, &event), 0);
  EXPECT_EQ(::epoll_wait(set, &found, 1, 0), 0);
  ASSERT_EQ(::shutdown(pair_.client, SHUT_WR), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    bool sees = true;
    for (int i = 0; i < 2; ++i)
      sees &= ::epoll_wait(set, &found, 1, longest_ms) == 1 && found.data.u64 == 7 && found.events == EPOLLIN;
    ::_exit(sees ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(::epoll_wait(set, &found, 1, longest_ms), 1);
    EXPECT_EQ(::epoll_ctl(set, EPOLL_CTL_MOD, pair_.server, &event), 0);
  }
  ::close(set);
}

}  // namespace
}  // namespace weir::sockets::test
