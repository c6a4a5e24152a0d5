// What the tests of event polls share.
#pragma once

#include <gmock/gmock.h>
#include <sys/epoll.h>

#include <future>
#include <latch>

#include "tests/give_others_time.hpp"
#include "tests/rsocket/fixture.hpp"
#include "verbs/rsocket/api.hpp"

namespace weir::rsocket {

using Told = std::pair<std::uint32_t, std::uint64_t>;  // events, and their user data

// What repoll_create() makes, with each member's number as its data.
class Set {
 public:
  Set() : number_(::repoll_create(EPOLL_CLOEXEC)) { EXPECT_GE(number_, 0) << std::strerror(errno); }
  ~Set() { EXPECT_EQ(::rclose(number_), 0); }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;
  int get() const { return number_; }

  // 0 or an errno.
  int control(int operation, int fd, std::uint32_t events = 0) {
    epoll_event event{.events = events, .data = {.u64 = static_cast<std::uint64_t>(fd)}};
    return ::repoll_ctl(number_, operation, fd, &event) == 0 ? 0 : errno;
  }
  void add(const Rsocket& socket, std::uint32_t events) {
    EXPECT_EQ(control(EPOLL_CTL_ADD, socket.get(), events), 0);
  }
  void modify(const Rsocket& socket, std::uint32_t events) {
    EXPECT_EQ(control(EPOLL_CTL_MOD, socket.get(), events), 0);
  }
  std::vector<Told> wait(int timeout_ms = patience_ms, int most = 64) {
    std::vector<epoll_event> events(static_cast<std::size_t>(most));
    const int count = ::repoll_wait(number_, events.data(), most, timeout_ms);
    EXPECT_GE(count, 0) << std::strerror(errno);
    std::vector<Told> told;
    events.resize(static_cast<std::size_t>(std::max(count, 0)));
    for (const epoll_event event : events)
      told.emplace_back(std::uint32_t{event.events}, std::uint64_t{event.data.u64});
    return told;
  }
  std::vector<Told> now() { return wait(0); }
  // A wait in another thread, which sleeps by the time this returns, or soon.
  std::future<std::vector<Told>> begin_wait() {
    std::latch begun(1);
    auto waits = std::async(std::launch::async, [&] {
      begun.count_down();
      return wait();
    });
    begun.wait();
    give_others_time();
    return waits;
  }
  // Looks in vain until its members are watched by the kernel.
  void tire() {
    for (int i = 0; i < 300; ++i) EXPECT_THAT(now(), testing::IsEmpty());
  }

 private:
  const int number_;
};

inline Told told_of(int fd, std::uint32_t events) { return {events, static_cast<std::uint64_t>(fd)}; }
inline Told in(const Rsocket& socket, std::uint32_t events = EPOLLIN) {
  return told_of(socket.get(), events);
}
inline Told out(const Rsocket& socket) { return told_of(socket.get(), EPOLLOUT); }

}  // namespace weir::rsocket
