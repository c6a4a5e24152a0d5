// Calls that wait, whose answers must be the kernel's: as as_the_kernel_test.cpp.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/cancelled_thread.hpp"
#include "tests/sockets/change_fixture.hpp"
#include "tests/sockets/sleeping_thread.hpp"

namespace weir::sockets::test {
namespace {

using AsTheKernel = Change;

struct Crowd {
  const char* what;
  int connections, counters, events;  // of a set; how many events one wait takes
};

TEST_F(AsTheKernel, each_ready_member_of_an_epoll_set_has_its_turn) {
  for (const Crowd& row : {Crowd{"connections", 6, 0, 2},
                           {"one event at a time", 3, 1, 1},
                           {"one counter", 5, 1, 2},
                           {"many counters", 1, 5, 2},
                           {"as many counters", 3, 3, 2}}) {
    SCOPED_TRACE(row.what);
    const int set = ::epoll_create1(EPOLL_CLOEXEC);
    std::vector<std::unique_ptr<TcpPair>> pairs;
    std::vector<int> counters;
    std::vector<int> turns(static_cast<std::size_t>(row.connections + row.counters));
    const auto add = [&](int fd) {
      epoll_event event{.events = EPOLLIN, .data = {.u64 = pairs.size() + counters.size() - 1}};
      ASSERT_EQ(::epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
    };
    for (int i = 0; i < row.connections; ++i) {
      pairs.push_back(std::make_unique<TcpPair>());
      ASSERT_NO_FATAL_FAILURE(warm_up(*pairs.back()));
      ASSERT_TRUE(send_all(pairs.back()->client, "never read"));
      ASSERT_TRUE(readable(pairs.back()->server, longest_ms));
      add(pairs.back()->server);
    }
    for (int i = 0; i < row.counters; ++i) {
      counters.push_back(::eventfd(1, EFD_CLOEXEC));
      add(counters.back());
    }
    for (int wait = 0; wait < 600; ++wait) {
      std::array<epoll_event, 2> found{};
      const int ready = ::epoll_wait(set, found.data(), row.events, longest_ms);
      ASSERT_GT(ready, 0);
      for (int i = 0; i < ready; ++i) ++turns[found[static_cast<std::size_t>(i)].data.u64];
    }
    const auto [least, most] = std::ranges::minmax(turns);
    EXPECT_GE(3 * least, most) << ::testing::PrintToString(turns);
    for (const int fd : counters) ::close(fd);
    ::close(set);
  }
}

struct Registered {
  const char* what;
  std::uint32_t events;
  int again;  // events without a read
};

TEST_F(AsTheKernel, an_epoll_set_keeps_a_closed_number_whose_copy_is_open) {
  for (const Registered& row : {Registered{"level", EPOLLIN, 1},
                                {"edge", EPOLLIN | EPOLLET, 0},
                                {"one shot", EPOLLIN | EPOLLONESHOT, 0}}) {
    SCOPED_TRACE(row.what);
    TcpPair pair;
    ASSERT_NO_FATAL_FAILURE(warm_up(pair));
    const int set = ::epoll_create1(EPOLL_CLOEXEC), number = pair.server;
    epoll_event event{.events = row.events, .data = {.u64 = 1}};
    ASSERT_EQ(::epoll_ctl(set, EPOLL_CTL_ADD, number, &event), 0);
    pair.server = ::fcntl(number, F_DUPFD_CLOEXEC, 0);
    const int counter = ::eventfd(0, EFD_CLOEXEC);
    // Closes the number and makes it another file's, which is in the set, too. Not in two steps: the
    // library's own thread might get the number in between.
    ASSERT_EQ(::dup3(counter, number, O_CLOEXEC), number);
    event = {.events = EPOLLIN, .data = {.u64 = 2}};
    ASSERT_EQ(::epoll_ctl(set, EPOLL_CTL_ADD, number, &event), 0);
    ASSERT_TRUE(send_all(pair.client, "x"));
    epoll_event found{};
    ASSERT_EQ(::epoll_wait(set, &found, 1, longest_ms), 1);
    EXPECT_EQ(found.data.u64, 1u);
    EXPECT_EQ(::epoll_wait(set, &found, 1, 0), row.again);
    EXPECT_EQ(receive(pair.server, 1), "x");
    EXPECT_EQ(::epoll_wait(set, &found, 1, 0), 0);
    ASSERT_EQ(::eventfd_write(counter, 1), 0);
    ASSERT_EQ(::epoll_wait(set, &found, 1, longest_ms), 1);
    EXPECT_EQ(found.data.u64, 2u);
    for (const int fd : {number, counter, set}) ::close(fd);
  }
}

struct WaitsForOne {
  const char* what;
  int (*wait)(int fd);  // returns 1 if it can be read
};

constexpr WaitsForOne waits_for_one[] = {{"poll",
                                          [](int fd) {
                                            pollfd one{fd, POLLIN, 0};
                                            return ::poll(&one, 1, longest_ms);
                                          }},
                                         {"ppoll",
                                          [](int fd) {
                                            pollfd one{fd, POLLIN, 0};
                                            const timespec limit{.tv_sec = longest_ms / 1000, .tv_nsec = 0};
                                            sigset_t none;
                                            ::sigemptyset(&none);
                                            return ::ppoll(&one, 1, &limit, &none);
                                          }},
                                         {"select",
                                          [](int fd) {
                                            fd_set set;
                                            FD_ZERO(&set);
                                            FD_SET(fd, &set);
                                            timeval limit{.tv_sec = longest_ms / 1000, .tv_usec = 0};
                                            return ::select(fd + 1, &set, nullptr, nullptr, &limit);
                                          }},
                                         {"recv", [](int fd) {
                                            char byte = 0;
                                            return static_cast<int>(::recv(fd, &byte, 1, MSG_PEEK));
                                          }}};

TEST_F(AsTheKernel, one_byte_wakes_all_threads_that_wait_for_it) {
  constexpr std::size_t waiters = 12;
  for (const WaitsForOne& row : waits_for_one) {
    SCOPED_TRACE(row.what);
    std::array<std::atomic<pid_t>, waiters> ids{};
    std::vector<std::thread> threads;
    for (auto& id : ids)
      threads.emplace_back([&] {
        id = ::gettid();
        EXPECT_EQ(row.wait(pair_.server), 1);
      });
    for (const auto& id : ids) await_sleep_of(id);
    const auto sent = std::chrono::steady_clock::now();
    ASSERT_TRUE(send_all(pair_.client, "x"));
    for (auto& one : threads) one.join();
    EXPECT_LT(std::chrono::steady_clock::now() - sent, std::chrono::milliseconds(longest_ms / 2));
    EXPECT_EQ(receive(pair_.server, 1), "x");
  }
}

struct Cancelled {
  const char* what;
  bool ends;  // a cancelled thread
  void (*make)(const TcpPair& pair, int set);
};

// In these calls the library wakes sleepers, waits for the peer, or reads what is already there.
constexpr Cancelled cancelled_calls[] = {
    {"epoll_ctl", false,
     [](const TcpPair& on, int set) {
       epoll_event event{.events = EPOLLIN, .data = {}};
       EXPECT_EQ(::epoll_ctl(set, EPOLL_CTL_ADD, on.server, &event), 0);
     }},
    {"shutdown", false, [](const TcpPair& on, int) { EXPECT_EQ(::shutdown(on.server, SHUT_WR), 0); }},
    {"setsockopt", false,
     [](const TcpPair& on, int) {
       const int bytes = 1;
       EXPECT_EQ(::setsockopt(on.server, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes), 0);
     }},
    {"syscall(SYS_read)", false,
     [](const TcpPair& on, int) {
       char byte = 0;
       EXPECT_EQ(::syscall(SYS_read, on.server, &byte, 1), 1);
     }},
    {"read", true,
     [](const TcpPair& on, int) {
       char byte = 0;
       (void)!::read(on.server, &byte, 1);
     }},
    {"send", true, [](const TcpPair& on, int) { ::send(on.server, "x", 1, 0); }},
    {"poll", true,
     [](const TcpPair& on, int) {
       pollfd one{on.server, POLLIN, 0};
       ::poll(&one, 1, 0);
     }},
    {"epoll_wait", true, [](const TcpPair&, int set) {
       epoll_event event{};
       ::epoll_wait(set, &event, 1, 0);
     }}};

TEST_F(AsTheKernel, a_cancelled_thread_ends_where_the_kernel_ends_it) {
  for (const Cancelled& row : cancelled_calls) {
    SCOPED_TRACE(row.what);
    TcpPair pair, watched;
    ASSERT_NO_FATAL_FAILURE(warm_up(pair));
    ASSERT_NO_FATAL_FAILURE(warm_up(watched));
    // A set in a set is woken whenever something changes in it.
    const int set = ::epoll_create1(EPOLL_CLOEXEC), outer = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{.events = EPOLLIN, .data = {}};
    ASSERT_EQ(::epoll_ctl(outer, EPOLL_CTL_ADD, set, &event), 0);
    ASSERT_EQ(::epoll_ctl(set, EPOLL_CTL_ADD, watched.server, &event), 0);
    ASSERT_TRUE(send_all(pair.client, "sent before"));
    ASSERT_TRUE(readable(pair.server, longest_ms));
    EXPECT_EQ(weir::test::is_ended_in([&] { row.make(pair, set); }), row.ends);
    const std::size_t read = std::string_view(row.what) == "syscall(SYS_read)" ? 1 : 0;
    EXPECT_EQ(receive(pair.server, 11 - read), std::string("sent before").substr(read));
    ::close(set);
    ::close(outer);
  }
}

TEST_F(AsTheKernel, a_thread_is_cancelled_in_its_sleep) {
  for (const WaitsForOne& row : waits_for_one) {
    SCOPED_TRACE(row.what);
    // More often than a connection has room for threads that wait for it.
    for (int i = 0; i < 6; ++i) {
      std::atomic<pid_t> id{0};
      std::atomic<bool> returned{false};
      std::thread waits([&] {
        id = ::gettid();
        row.wait(pair_.server);
        returned = true;
      });
      await_sleep_of(id);
      ASSERT_EQ(::pthread_cancel(waits.native_handle()), 0);
      waits.join();
      EXPECT_FALSE(returned);
    }
  }
  exchange(pair_);
}

}  // namespace
}  // namespace weir::sockets::test
