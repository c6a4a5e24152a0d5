// The C library's calls that wait for descriptors. Entry points for other people's programs.
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>

#include "preload/next_call.hpp"
#include "sockets/calls/scratch.hpp"
#include "sockets/connections.hpp"
#include "sockets/descriptors.hpp"
#include "sockets/event_set.hpp"
#include "sockets/poll.hpp"

using namespace weir::sockets;

namespace {

Timeout of_milliseconds(int timeout) {
  if (timeout < 0) return std::nullopt;
  return std::chrono::milliseconds(timeout);
}

bool valid(const timespec* timeout) {
  return timeout == nullptr ||
         (timeout->tv_sec >= 0 && timeout->tv_nsec >= 0 && timeout->tv_nsec < 1'000'000'000);
}

Timeout of(const timespec* timeout) {
  if (timeout == nullptr) return std::nullopt;
  constexpr time_t longest_s = 1'000'000'000;
  return std::chrono::seconds(std::min(timeout->tv_sec, longest_s)) +
         std::chrono::nanoseconds(timeout->tv_nsec);
}

// As many bits as the kernel would read: programs may name more than they have memory for.
unsigned read_by_kernel(int count) {
  constexpr unsigned at_once = 128;  // by which the kernel's table of descriptors grows
  const unsigned open = std::bit_ceil(Descriptors::count() / at_once + 1) * at_once;
  return std::min(static_cast<unsigned>(std::max(count, 0)), std::max(open, unsigned{FD_SETSIZE}));
}

// The descriptors below `count` that select() asks for. Programs may have sets larger than fd_set, for which
// the C library's FD_ISSET ends them.
class AskedFor {
 public:
  AskedFor(int count, fd_set* read, fd_set* write, fd_set* except)
      : count_(read_by_kernel(count)), sets_{read, write, except} {}

  template <class Visit>
  void each(Visit visit) const {
    for (unsigned from = 0; from < count_; from += bits)
      for (Word word = all_of(from / bits); word != 0; word &= word - 1)
        if (const unsigned fd = from + static_cast<unsigned>(std::countr_zero(word)); fd < count_)
          visit(static_cast<int>(fd));
  }
  bool has(std::size_t set, int fd) const {
    const auto bit = static_cast<unsigned>(fd);
    return sets_[set] != nullptr && (words(set)[bit / bits] >> (bit % bits) & 1) != 0;
  }
  void clear(std::size_t set, int fd) const {
    const auto bit = static_cast<unsigned>(fd);
    words(set)[bit / bits] &= ~(Word{1} << (bit % bits));
  }
  static constexpr std::size_t sets = 3;

 private:
  using Word = unsigned long;
  static constexpr unsigned bits = 8 * sizeof(Word);

  Word* words(std::size_t set) const { return reinterpret_cast<Word*>(sets_[set]); }
  Word all_of(unsigned at) const {
    Word all = 0;
    for (std::size_t set = 0; set < sets; ++set) all |= sets_[set] != nullptr ? words(set)[at] : 0;
    return all;
  }

  const unsigned count_;
  const std::array<fd_set*, sets> sets_;
};

bool concerns_us(const AskedFor& asked) {
  bool any = false;
  asked.each([&](int fd) {
    const pollfd one{fd, 0, 0};
    any = any || weir::sockets::concerns_us({&one, 1});
  });
  return any;
}

// select() built on poll(), with the same events as in the kernel's do_select().
int select_by_poll(const AskedFor& asked, Timeout timeout, const sigset_t* mask) {
  constexpr std::array<short, AskedFor::sets> events{POLLIN, POLLOUT, POLLPRI};
  constexpr std::array<short, AskedFor::sets> answers{POLLIN | POLLHUP | POLLERR | POLLRDNORM,
                                                      POLLOUT | POLLERR | POLLWRNORM, POLLPRI};
  std::size_t count = 0;
  asked.each([&](int) { ++count; });
  Scratch scratch(Row<pollfd>::bytes_for(count));
  if (!scratch) {
    errno = ENOMEM;
    return -1;
  }
  Row<pollfd> fds(scratch, count);
  asked.each([&](int fd) {
    pollfd& one = fds.emplace_back(pollfd{fd, 0, 0});
    for (std::size_t set = 0; set < AskedFor::sets; ++set)
      if (asked.has(set, fd)) one.events = static_cast<short>(one.events | events[set]);
  });
  const int found = wait_for_any({fds.begin(), fds.size()}, timeout, mask);
  if (found < 0) return found;
  if (std::ranges::any_of(fds, [](const pollfd& one) { return (one.revents & POLLNVAL) != 0; })) {
    errno = EBADF;
    return -1;
  }
  int ready = 0;
  for (const pollfd& one : fds) {
    for (std::size_t set = 0; set < AskedFor::sets; ++set) {
      if (!asked.has(set, one.fd)) continue;
      if ((one.revents & answers[set]) != 0)
        ++ready;
      else
        asked.clear(set, one.fd);
    }
  }
  return ready;
}

}  // namespace

extern "C" {

int poll(pollfd* fds, nfds_t count, int timeout) {
  WEIR_NEXT(int(pollfd*, nfds_t, int), poll);
  if (fds == nullptr || !concerns_us({fds, count})) return call(fds, count, timeout);
  return wait_for_any({fds, count}, of_milliseconds(timeout), nullptr);
}

int __poll_chk(pollfd* fds, nfds_t count, int timeout, size_t limit) {
  WEIR_NEXT(int(pollfd*, nfds_t, int, size_t), __poll_chk);
  if (fds == nullptr || count > limit / sizeof *fds || !concerns_us({fds, count}))
    return call(fds, count, timeout, limit);
  return wait_for_any({fds, count}, of_milliseconds(timeout), nullptr);
}

int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  WEIR_NEXT(int(pollfd*, nfds_t, const timespec*, const sigset_t*), ppoll);
  if (fds == nullptr || !valid(timeout) || !concerns_us({fds, count})) return call(fds, count, timeout, mask);
  return wait_for_any({fds, count}, of(timeout), mask);
}

int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask, size_t limit) {
  WEIR_NEXT(int(pollfd*, nfds_t, const timespec*, const sigset_t*, size_t), __ppoll_chk);
  if (fds == nullptr || count > limit / sizeof *fds || !valid(timeout) || !concerns_us({fds, count}))
    return call(fds, count, timeout, mask, limit);
  return wait_for_any({fds, count}, of(timeout), mask);
}

int select(int count, fd_set* read, fd_set* write, fd_set* except, timeval* timeout) {
  WEIR_NEXT(int(int, fd_set*, fd_set*, fd_set*, timeval*), select);
  const AskedFor asked(count, read, write, except);
  if (!concerns_us(asked) || (timeout != nullptr && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
    return call(count, read, write, except, timeout);
  Timeout limit;
  if (timeout != nullptr)
    limit = std::chrono::seconds(timeout->tv_sec) + std::chrono::microseconds(timeout->tv_usec);
  const auto begun = std::chrono::steady_clock::now();
  const int found = select_by_poll(asked, limit, nullptr);
  if (limit) {  // report the time left, as Linux does
    const auto left = std::max(std::chrono::nanoseconds::zero(),
                               std::chrono::nanoseconds(*limit - (std::chrono::steady_clock::now() - begun)));
    timeout->tv_sec = left / std::chrono::seconds(1);
    timeout->tv_usec = (left % std::chrono::seconds(1)) / std::chrono::microseconds(1);
  }
  return found;
}

int pselect(int count, fd_set* read, fd_set* write, fd_set* except, const timespec* timeout,
            const sigset_t* mask) {
  WEIR_NEXT(int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*), pselect);
  const AskedFor asked(count, read, write, except);
  if (!concerns_us(asked) || !valid(timeout)) return call(count, read, write, except, timeout, mask);
  return select_by_poll(asked, of(timeout), mask);
}

int epoll_create1(int flags) noexcept {
  WEIR_NEXT(int(int), epoll_create1);
  const int made = call(flags);
  if (made >= 0) Connections::set_born(made);
  return made;
}

int epoll_create(int size) noexcept {
  WEIR_NEXT(int(int), epoll_create);
  const int made = call(size);
  if (made >= 0) Connections::set_born(made);
  return made;
}

int epoll_ctl(int epfd, int operation, int fd, epoll_event* event) noexcept {
  WEIR_NEXT(int(int, int, int, epoll_event*), epoll_ctl);
  EventSet* const set = Descriptors::find_set(epfd);
  return set != nullptr ? set->control(operation, fd, event) : call(epfd, operation, fd, event);
}

int epoll_wait(int epfd, epoll_event* events, int most, int timeout) {
  WEIR_NEXT(int(int, epoll_event*, int, int), epoll_wait);
  EventSet* const set = Descriptors::find_set(epfd);
  return set != nullptr ? set->wait(events, most, of_milliseconds(timeout), nullptr)
                        : call(epfd, events, most, timeout);
}

int epoll_pwait(int epfd, epoll_event* events, int most, int timeout, const sigset_t* mask) {
  WEIR_NEXT(int(int, epoll_event*, int, int, const sigset_t*), epoll_pwait);
  EventSet* const set = Descriptors::find_set(epfd);
  return set != nullptr ? set->wait(events, most, of_milliseconds(timeout), mask)
                        : call(epfd, events, most, timeout, mask);
}

int epoll_pwait2(int epfd, epoll_event* events, int most, const timespec* timeout, const sigset_t* mask) {
  WEIR_NEXT(int(int, epoll_event*, int, const timespec*, const sigset_t*), epoll_pwait2);
  EventSet* const set = Descriptors::find_set(epfd);
  return set != nullptr && valid(timeout) ? set->wait(events, most, of(timeout), mask)
                                          : call(epfd, events, most, timeout, mask);
}

}  // extern "C"
