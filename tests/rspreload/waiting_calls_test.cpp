// Under librspreload.so: each call that waits for descriptors.
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "tests/rspreload/preloaded.hpp"

namespace weir::rspreload {
namespace {

// Each way to wait for the server's end to be readable.
struct Waiting {
  const char* how;
  bool (*readable)(int fd, int timeout_ms);
};
timespec as_timespec(int ms) { return {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1'000'000}; }
sigset_t no_signals() {
  sigset_t none;
  ::sigemptyset(&none);
  return none;
}
bool in_event_poll(int fd, auto wait) {
  const Fd poll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  EXPECT_EQ(::epoll_ctl(poll.get(), EPOLL_CTL_ADD, fd, &event), 0);
  event = {};
  const int count = wait(poll.get(), &event);
  EXPECT_EQ(event.data.fd, count == 1 ? fd : 0);
  return count == 1 && event.events == EPOLLIN;
}
const Waiting waitings[] = {
    {"poll",
     [](int fd, int ms) {
       std::vector<pollfd> one{{.fd = fd, .events = POLLIN, .revents = 0}};
       return ::poll(one.data(), one.size(), ms) == 1 && one[0].revents == POLLIN;
     }},
    {"poll_of_a_size_the_compiler_knows",
     [](int fd, int ms) {
       pollfd one[2]{{.fd = fd, .events = POLLIN, .revents = 0}};
       return ::poll(one, static_cast<nfds_t>(std::atoi("1")), ms) == 1 && one[0].revents == POLLIN;
     }},
    {"ppoll",
     [](int fd, int ms) {
       std::vector<pollfd> one{{.fd = fd, .events = POLLIN, .revents = 0}};
       const timespec limit = as_timespec(ms);
       const sigset_t mask = no_signals();
       return ::ppoll(one.data(), one.size(), &limit, &mask) == 1 && one[0].revents == POLLIN;
     }},
    {"ppoll_of_a_size_the_compiler_knows",
     [](int fd, int ms) {
       pollfd one[2]{{.fd = fd, .events = POLLIN, .revents = 0}};
       const timespec limit = as_timespec(ms);
       return ::ppoll(one, static_cast<nfds_t>(std::atoi("1")), &limit, nullptr) == 1 &&
              one[0].revents == POLLIN;
     }},
    {"select",
     [](int fd, int ms) {
       fd_set set;
       FD_ZERO(&set);
       FD_SET(fd, &set);
       timeval limit{.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
       return ::select(fd + 1, &set, nullptr, nullptr, &limit) == 1 && FD_ISSET(fd, &set);
     }},
    {"pselect",
     [](int fd, int ms) {
       fd_set set;
       FD_ZERO(&set);
       FD_SET(fd, &set);
       const timespec limit = as_timespec(ms);
       const sigset_t mask = no_signals();
       return ::pselect(fd + 1, &set, nullptr, nullptr, &limit, &mask) == 1 && FD_ISSET(fd, &set);
     }},
    {"epoll_wait",
     [](int fd, int ms) {
       return in_event_poll(fd,
                            [&](int poll, epoll_event* event) { return ::epoll_wait(poll, event, 1, ms); });
     }},
    {"epoll_pwait",
     [](int fd, int ms) {
       const sigset_t mask = no_signals();
       return in_event_poll(
           fd, [&](int poll, epoll_event* event) { return ::epoll_pwait(poll, event, 1, ms, &mask); });
     }},
    {"epoll_pwait2",
     [](int fd, int ms) {
       const timespec limit = as_timespec(ms);
       return in_event_poll(
           fd, [&](int poll, epoll_event* event) { return ::epoll_pwait2(poll, event, 1, &limit, nullptr); });
     }},
};

TEST_F(Calls, wait_each_way) {
  for (const Waiting& one : waitings) {
    EXPECT_FALSE(one.readable(to(), 10)) << one.how;
    send_and_wait("x");
    EXPECT_TRUE(one.readable(to(), patience_ms)) << one.how;
    EXPECT_EQ(received(1), "x");
  }
}

TEST_F(Calls, wait_for_plain_descriptors_alone_as_ever) {
  const Fd event(::eventfd(1, EFD_CLOEXEC));
  for (const Waiting& one : waitings) EXPECT_TRUE(one.readable(event.get(), patience_ms)) << one.how;
}

TEST_F(Calls, refuse_times_that_are_none) {
  std::vector<pollfd> one{{.fd = to(), .events = POLLIN, .revents = 0}};
  const timespec nonsense{.tv_sec = 0, .tv_nsec = 1'000'000'000};
  EXPECT_EQ(::ppoll(one.data(), one.size(), &nonsense, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace weir::rspreload
