// What the kernel has reported of an engaged connection's socket: bytes by TCP, the end, an error. It reports
// each change once, to epoll sets that watch for edges (event_set.hpp), so these bits say what to ask for,
// not what is there: a set bit may be out of date. What came after a bit was cleared is reported again.
//
// A report and a reader that finds nothing left may cross. So each report has a number, and a bit is only
// cleared if nothing was reported since the reader looked here.
//
// Pure. Threading: any thread.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>

namespace weir::sockets {

class KernelEvents {
 public:
  using Seen = std::uint64_t;  // the bits below the number of the latest report
  static constexpr std::uint32_t ends = EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR;
  static constexpr std::uint32_t kept = EPOLLIN | ends;

  Seen seen() const { return word_.load(); }
  static std::uint32_t bits(Seen seen) { return static_cast<std::uint32_t>(seen) & 0xffff; }

  void reported(std::uint32_t events) {
    Seen now = seen();
    while (!word_.compare_exchange_weak(now, next_report(now) | bits(now) | (events & kept))) {
    }
  }
  // `events` are gone, as the kernel answered after `before` was seen.
  void absent(Seen before, std::uint32_t events) {
    word_.compare_exchange_strong(before, before & ~Seen{events & kept});
  }
  // A read emptied the socket. After the end, and at urgent data, a read returns less although there is more.
  void emptied(Seen before) {
    if ((bits(before) & ends) == 0) absent(before, EPOLLIN);
  }
  void renew() { word_.store(next_report(seen())); }

 private:
  static Seen next_report(Seen seen) { return ((seen >> 16) + 1) << 16; }

  std::atomic<Seen> word_{0};
};

}  // namespace weir::sockets
