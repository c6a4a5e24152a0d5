// The waiting calls of the C library, with and without libweir_look.so in front of them.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <thread>

extern "C" [[gnu::visibility("default")]] unsigned weir_open_channels() { return 1; }

namespace {

struct Descriptor {
  int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  int set = ::epoll_create1(EPOLL_CLOEXEC);

  Descriptor() {
    epoll_event readable{.events = EPOLLIN, .data = {.u64 = 7}};
    EXPECT_EQ(::epoll_ctl(set, EPOLL_CTL_ADD, fd, &readable), 0);
  }
  ~Descriptor() {
    ::close(set);
    ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void raise() const {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(fd, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
};

// Waits for the descriptor, for `ms` at most (-1: without end); returns what the call does, -1 with errno.
// The mask, if the call has one, blocks nothing.
struct Call {
  const char* name;
  bool has_mask;
  int (*wait)(const Descriptor&, int ms);
};

timespec of(int ms) { return {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1'000'000L}; }

const Call calls[] = {
    {"epoll_wait", false,
     [](const Descriptor& on, int ms) {
       epoll_event event{};
       const int found = ::epoll_wait(on.set, &event, 1, ms);
       if (found > 0) {
         EXPECT_EQ(event.data.u64, 7U);
       }
       return found;
     }},
    {"epoll_pwait", true,
     [](const Descriptor& on, int ms) {
       epoll_event event{};
       sigset_t none;
       ::sigemptyset(&none);
       return ::epoll_pwait(on.set, &event, 1, ms, &none);
     }},
    {"poll", false,
     [](const Descriptor& on, int ms) {
       pollfd one{on.fd, POLLIN, 0};
       const int found = ::poll(&one, 1, ms);
       EXPECT_EQ(one.revents, found > 0 ? POLLIN : 0);
       return found;
     }},
    {"ppoll", true,
     [](const Descriptor& on, int ms) {
       pollfd one{on.fd, POLLIN, 0};
       const timespec time = of(ms);
       sigset_t none;
       ::sigemptyset(&none);
       return ::ppoll(&one, 1, ms < 0 ? nullptr : &time, &none);
     }},
    {"select", false,
     [](const Descriptor& on, int ms) {
       fd_set read;
       FD_ZERO(&read);
       FD_SET(on.fd, &read);
       timeval time{.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000L};
       const int found = ::select(on.fd + 1, &read, nullptr, nullptr, ms < 0 ? nullptr : &time);
       if (found >= 0) {
         EXPECT_EQ(FD_ISSET(on.fd, &read) != 0, found > 0);
       }
       return found;
     }},
    {"pselect", true,
     [](const Descriptor& on, int ms) {
       fd_set read;
       FD_ZERO(&read);
       FD_SET(on.fd, &read);
       const timespec time = of(ms);
       sigset_t none;
       ::sigemptyset(&none);
       const int found = ::pselect(on.fd + 1, &read, nullptr, nullptr, ms < 0 ? nullptr : &time, &none);
       if (found >= 0) {
         EXPECT_EQ(FD_ISSET(on.fd, &read) != 0, found > 0);
       }
       return found;
     }},
};

TEST(WaitingCalls, find_what_is_there) {
  for (const Call& each : calls) {
    SCOPED_TRACE(each.name);
    const Descriptor on;
    on.raise();
    for (const int ms : {0, 5, -1}) EXPECT_EQ(each.wait(on, ms), 1);
  }
}

TEST(WaitingCalls, end_in_time_with_nothing) {
  for (const Call& each : calls) {
    SCOPED_TRACE(each.name);
    const Descriptor on;
    for (const int ms : {0, 1, 30}) {
      const auto begun = std::chrono::steady_clock::now();
      EXPECT_EQ(each.wait(on, ms), 0);
      EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(ms));
    }
  }
}

TEST(WaitingCalls, find_what_comes_while_they_look_or_sleep) {
  for (const Call& each : calls) {
    SCOPED_TRACE(each.name);
    for (const int after_us : {0, 100, 5'000}) {
      const Descriptor on;
      std::thread raises([&] {
        std::this_thread::sleep_for(std::chrono::microseconds(after_us));
        on.raise();
      });
      EXPECT_EQ(each.wait(on, -1), 1);
      raises.join();
    }
  }
}

TEST(WaitingCalls, answer_bad_arguments_as_the_kernel_does) {
  epoll_event event{};
  EXPECT_EQ(::epoll_wait(-1, &event, 1, -1), -1);
  EXPECT_EQ(errno, EBADF);
  pollfd closed{1'000'000, POLLIN, 0};
  EXPECT_EQ(::poll(&closed, 1, -1), 1);
  EXPECT_EQ(closed.revents, POLLNVAL);
  const timespec wrong{.tv_sec = 1, .tv_nsec = 2'000'000'000};
  EXPECT_EQ(::ppoll(&closed, 0, &wrong, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(::select(-1, nullptr, nullptr, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
}

std::atomic<int> handled{0};

TEST(WaitingCalls, are_interrupted_by_a_signal_that_only_the_mask_lets_in) {
  struct sigaction to{}, before{};
  to.sa_handler = [](int) { ++handled; };
  ASSERT_EQ(::sigaction(SIGUSR1, &to, &before), 0);
  sigset_t blocked, old;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR1);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &blocked, &old), 0);
  for (const Call& each : calls) {
    if (!each.has_mask) continue;
    SCOPED_TRACE(each.name);
    const Descriptor on;
    handled = 0;
    ASSERT_EQ(::raise(SIGUSR1), 0);
    EXPECT_EQ(each.wait(on, -1), -1);
    EXPECT_EQ(errno, EINTR);
    EXPECT_EQ(handled, 1);
  }
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  ::sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
