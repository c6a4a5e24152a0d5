// The C library's calls that wait for descriptors. Entry points of other people's programs.
#include <pthread.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>

#include "verbs/rsocket/api.hpp"
#include "verbs/rspreload/callers.hpp"
#include "verbs/rspreload/descriptors.hpp"
#include "verbs/rspreload/next_call.hpp"

using namespace weir::rspreload;

namespace {

bool any_rsocket(const pollfd* fds, nfds_t count) {
  return std::any_of(fds, fds + count, [](const pollfd& one) { return is_rsocket(one.fd); });
}

bool any_rsocket(int count, const fd_set* read, const fd_set* write, const fd_set* except) {
  for (int fd = 0; fd < std::min(count, FD_SETSIZE); ++fd) {
    if (!is_rsocket(fd)) continue;
    for (const fd_set* set : {read, write, except}) {
      if (set != nullptr && FD_ISSET(fd, set)) return true;
    }
  }
  return false;
}

bool valid(const timespec* timeout) {
  return timeout == nullptr ||
         (timeout->tv_sec >= 0 && timeout->tv_nsec >= 0 && timeout->tv_nsec < 1'000'000'000);
}

int milliseconds(const timespec* timeout) {
  if (timeout == nullptr) return -1;
  constexpr std::int64_t most_s = INT_MAX / 1000 - 1;
  return static_cast<int>(std::min<std::int64_t>(timeout->tv_sec, most_s) * 1000 +
                          (timeout->tv_nsec + 999'999) / 1'000'000);
}

// Between, the thread has the signals of `mask` blocked. Unlike the kernel's, not in one step with the
// waiting: a signal that comes just before is handled, and the wait not interrupted.
class Masked {
 public:
  explicit Masked(const sigset_t* mask) : set_(mask != nullptr) {
    if (set_) ::pthread_sigmask(SIG_SETMASK, mask, &before_);
  }
  ~Masked() {
    const int error = errno;
    if (set_) ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  Masked(const Masked&) = delete;
  Masked& operator=(const Masked&) = delete;

 private:
  const bool set_;
  sigset_t before_;
};

int refused(int error) {
  errno = error;
  return -1;
}

int made(int event_poll) {
  if (event_poll < 0 || set_kind(event_poll, Kind::event_poll)) return event_poll;
  ::rclose(event_poll);
  return refused(EMFILE);
}

bool is_event_poll(int fd) { return kind_of(fd) == Kind::event_poll; }

}  // namespace

extern "C" {

int poll(pollfd* fds, nfds_t count, int timeout) {
  WEIR_NEXT(int(pollfd*, nfds_t, int), poll);
  return WEIR_OF_PROGRAM() && any_rsocket(fds, count) ? ::rpoll(fds, count, timeout)
                                                      : call(fds, count, timeout);
}

int __poll_chk(pollfd* fds, nfds_t count, int timeout, size_t limit) {
  WEIR_NEXT(int(pollfd*, nfds_t, int, size_t), __poll_chk);
  return WEIR_OF_PROGRAM() && count <= limit / sizeof *fds && any_rsocket(fds, count)
             ? ::rpoll(fds, count, timeout)
             : call(fds, count, timeout, limit);
}

int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  WEIR_NEXT(int(pollfd*, nfds_t, const timespec*, const sigset_t*), ppoll);
  if (!WEIR_OF_PROGRAM() || !any_rsocket(fds, count)) return call(fds, count, timeout, mask);
  if (!valid(timeout)) return refused(EINVAL);
  const Masked masked(mask);
  return ::rpoll(fds, count, milliseconds(timeout));
}

int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask, size_t limit) {
  WEIR_NEXT(int(pollfd*, nfds_t, const timespec*, const sigset_t*, size_t), __ppoll_chk);
  if (!WEIR_OF_PROGRAM() || count > limit / sizeof *fds || !any_rsocket(fds, count))
    return call(fds, count, timeout, mask, limit);
  if (!valid(timeout)) return refused(EINVAL);
  const Masked masked(mask);
  return ::rpoll(fds, count, milliseconds(timeout));
}

int select(int count, fd_set* read, fd_set* write, fd_set* except, timeval* timeout) {
  WEIR_NEXT(int(int, fd_set*, fd_set*, fd_set*, timeval*), select);
  return WEIR_OF_PROGRAM() && any_rsocket(count, read, write, except)
             ? ::rselect(count, read, write, except, timeout)
             : call(count, read, write, except, timeout);
}

int pselect(int count, fd_set* read, fd_set* write, fd_set* except, const timespec* timeout,
            const sigset_t* mask) {
  WEIR_NEXT(int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*), pselect);
  if (!WEIR_OF_PROGRAM() || !any_rsocket(count, read, write, except))
    return call(count, read, write, except, timeout, mask);
  if (!valid(timeout)) return refused(EINVAL);
  const Masked masked(mask);
  timeval limit{};
  if (timeout != nullptr) limit = {.tv_sec = timeout->tv_sec, .tv_usec = (timeout->tv_nsec + 999) / 1000};
  return ::rselect(count, read, write, except, timeout != nullptr ? &limit : nullptr);
}

int epoll_create1(int flags) noexcept {
  WEIR_NEXT(int(int), epoll_create1);
  return WEIR_OF_PROGRAM() ? made(::repoll_create(flags)) : call(flags);
}

int epoll_create(int size) noexcept {
  WEIR_NEXT(int(int), epoll_create);
  return WEIR_OF_PROGRAM() && size > 0 ? made(::repoll_create(0)) : call(size);
}

int epoll_ctl(int epfd, int operation, int fd, epoll_event* event) noexcept {
  WEIR_NEXT(int(int, int, int, epoll_event*), epoll_ctl);
  return WEIR_OF_PROGRAM() && is_event_poll(epfd) ? ::repoll_ctl(epfd, operation, fd, event)
                                                  : call(epfd, operation, fd, event);
}

int epoll_wait(int epfd, epoll_event* events, int most, int timeout) {
  WEIR_NEXT(int(int, epoll_event*, int, int), epoll_wait);
  return WEIR_OF_PROGRAM() && is_event_poll(epfd) ? ::repoll_wait(epfd, events, most, timeout)
                                                  : call(epfd, events, most, timeout);
}

int epoll_pwait(int epfd, epoll_event* events, int most, int timeout, const sigset_t* mask) {
  WEIR_NEXT(int(int, epoll_event*, int, int, const sigset_t*), epoll_pwait);
  if (!WEIR_OF_PROGRAM() || !is_event_poll(epfd)) return call(epfd, events, most, timeout, mask);
  const Masked masked(mask);
  return ::repoll_wait(epfd, events, most, timeout);
}

int epoll_pwait2(int epfd, epoll_event* events, int most, const timespec* timeout, const sigset_t* mask) {
  WEIR_NEXT(int(int, epoll_event*, int, const timespec*, const sigset_t*), epoll_pwait2);
  if (!WEIR_OF_PROGRAM() || !is_event_poll(epfd)) return call(epfd, events, most, timeout, mask);
  if (!valid(timeout)) return refused(EINVAL);
  const Masked masked(mask);
  return ::repoll_wait(epfd, events, most, milliseconds(timeout));
}

}  // extern "C"
