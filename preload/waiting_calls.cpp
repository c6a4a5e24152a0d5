// The C library's calls that wait for descriptors. Entry points for other people's programs.
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "preload/next_call.hpp"
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

// select() built on poll(). False: none of the descriptors is ours.
class Selection {
 public:
  Selection(int count, fd_set* read, fd_set* write, fd_set* except) : sets_{read, write, except} {
    for (int fd = 0; fd < std::min(count, FD_SETSIZE); ++fd) {
      short events = 0;
      for (std::size_t i = 0; i < sets_.size(); ++i)
        if (sets_[i] != nullptr && FD_ISSET(fd, sets_[i])) events = static_cast<short>(events | asked[i]);
      if (events != 0) fds_.push_back({fd, events, 0});
    }
  }
  bool concerns_us() const { return weir::sockets::concerns_us(fds_); }

  int wait(Timeout timeout, const sigset_t* mask) {
    const int found = wait_for_any(fds_, timeout, mask);
    if (found < 0) return found;
    int bits = 0;
    for (const pollfd& one : fds_) {
      if ((one.revents & POLLNVAL) != 0) {
        errno = EBADF;
        return -1;
      }
    }
    for (const pollfd& one : fds_) {
      for (std::size_t i = 0; i < sets_.size(); ++i) {
        if (sets_[i] == nullptr || !FD_ISSET(one.fd, sets_[i])) continue;
        if ((one.revents & answers[i]) != 0)
          ++bits;
        else
          FD_CLR(one.fd, sets_[i]);
      }
    }
    return bits;
  }

 private:
  // The same events as in the kernel's do_select().
  static constexpr std::array<short, 3> asked{POLLIN, POLLOUT, POLLPRI};
  static constexpr std::array<short, 3> answers{POLLIN | POLLHUP | POLLERR | POLLRDNORM,
                                                POLLOUT | POLLERR | POLLWRNORM, POLLPRI};
  std::array<fd_set*, 3> sets_;
  std::vector<pollfd> fds_;
};

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
  Selection selection(count, read, write, except);
  if (!selection.concerns_us() || (timeout != nullptr && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
    return call(count, read, write, except, timeout);
  Timeout limit;
  if (timeout != nullptr)
    limit = std::chrono::seconds(timeout->tv_sec) + std::chrono::microseconds(timeout->tv_usec);
  const auto begun = std::chrono::steady_clock::now();
  const int found = selection.wait(limit, nullptr);
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
  Selection selection(count, read, write, except);
  if (!selection.concerns_us() || !valid(timeout)) return call(count, read, write, except, timeout, mask);
  return selection.wait(of(timeout), mask);
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
