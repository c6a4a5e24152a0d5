// rpoll and rselect: rsockets and plain descriptors together.
//
// All are looked at; if none is ready, again for polling_time; then the thread sleeps on its own descriptor
// and on those that the kernel or the NIC raises, and looks again. Whoever takes an event that another
// sleeper waits for wakes that one (watchers.hpp).
#include <sys/time.h>

#include <chrono>

#include "verbs/rsocket/api.hpp"

using namespace weir::rsocket;

namespace {

using Clock = std::chrono::steady_clock;

struct Watched {
  pollfd* asked;
  SocketPtr socket;  // null: a plain descriptor
};

std::vector<Watched> watched(pollfd* fds, nfds_t count) {
  std::vector<Watched> all;
  all.reserve(count);
  for (nfds_t i = 0; i < count; ++i) all.push_back({&fds[i], fds[i].fd < 0 ? nullptr : find(fds[i].fd)});
  return all;
}

int check_sockets(const std::vector<Watched>& all) {
  int ready = 0;
  for (const Watched& one : all) {
    if (!one.socket) continue;
    one.asked->revents = one.socket->ready(one.asked->events);
    if (one.asked->revents != 0) ++ready;
  }
  return ready;
}

std::vector<pollfd> plain_descriptors(const std::vector<Watched>& all) {
  std::vector<pollfd> plain;
  for (const Watched& one : all) {
    if (!one.socket) plain.push_back({.fd = one.asked->fd, .events = one.asked->events, .revents = 0});
  }
  return plain;
}

// `plain` begins with those of plain_descriptors(), in the same order.
int give_plain(const std::vector<Watched>& all, const std::vector<pollfd>& plain) {
  int ready = 0;
  std::size_t next = 0;
  for (const Watched& one : all) {
    if (one.socket) continue;
    one.asked->revents = plain[next++].revents;
    if (one.asked->revents != 0) ++ready;
  }
  return ready;
}

// Both kinds, without waiting. -1 and errno.
int check_all(const std::vector<Watched>& all) {
  int ready = check_sockets(all);
  auto plain = plain_descriptors(all);
  if (!plain.empty()) {
    if (::poll(plain.data(), plain.size(), 0) < 0) return -1;
    ready += give_plain(all, plain);
  }
  return ready;
}

// At its end, also by a cancelled thread's, no socket wakes the sleeper any more.
struct Sleep {
  const std::vector<Watched>& all;
  Waiter& sleeper;
  ~Sleep() {
    const int error = errno;
    for (const Watched& one : all) {
      if (one.socket) one.socket->end_sleep(sleeper);
    }
    errno = error;
  }
};

// Sleeps once; -1 and errno, 0, or some are ready. Sockets are not looked at after it.
int sleep_once(const std::vector<Watched>& all, int timeout_ms) {
  Waiter& waiter = Waiter::mine();
  waiter.clear();
  auto fds = plain_descriptors(all);
  const Sleep sleep{all, waiter};
  for (const Watched& one : all) {
    if (one.socket) one.socket->begin_sleep(waiter, fds);
  }
  if (const int ready = check_sockets(all); ready > 0) return ready;
  return waiter.sleep(fds, timeout_ms) < 0 ? -1 : 0;
}

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

struct Sets {
  fd_set* read;
  fd_set* write;
  fd_set* except;
};

bool has(const fd_set* set, int fd) { return set != nullptr && FD_ISSET(fd, set); }

std::vector<pollfd> as_poll(int count, const Sets& sets) {
  std::vector<pollfd> fds;
  for (int fd = 0; fd < count; ++fd) {
    short events = 0;
    if (has(sets.read, fd)) events |= POLLIN;
    if (has(sets.write, fd)) events |= POLLOUT;
    if (has(sets.except, fd)) events |= POLLPRI;
    if (events != 0) fds.push_back({.fd = fd, .events = events, .revents = 0});
  }
  return fds;
}

// What of a poll means what of a select: as the kernel's select has it.
int fill(const std::vector<pollfd>& fds, const Sets& sets) {
  int bits = 0;
  const auto put = [&](const pollfd& fd, fd_set* set, short asked, short means) {
    if ((fd.events & asked) == 0 || (fd.revents & means) == 0) return;
    FD_SET(fd.fd, set);
    ++bits;
  };
  for (const pollfd& fd : fds) {
    put(fd, sets.read, POLLIN, POLLIN | POLLHUP | POLLERR);
    put(fd, sets.write, POLLOUT, POLLOUT | POLLERR);
    put(fd, sets.except, POLLPRI, POLLPRI);
  }
  return bits;
}

}  // namespace

extern "C" {

int rpoll(pollfd* fds, nfds_t count, int timeout) {
  const auto all = watched(fds, count);
  const auto end = Clock::now() + std::chrono::milliseconds(std::max(timeout, 0));
  for (bool first = true;; first = false) {
    int ready = check_all(all);
    if (ready != 0 || timeout == 0) return ready;
    const bool any_socket =
        std::any_of(all.begin(), all.end(), [](const Watched& one) { return bool{one.socket}; });
    if (first && any_socket && try_a_while([&] { return (ready = check_sockets(all)) > 0; })) return ready;
    const int left = timeout < 0 ? -1 : milliseconds_until(end);
    if (left == 0) return 0;
    ready = sleep_once(all, left);
    if (ready < 0) return -1;
    if (ready > 0) return check_all(all);
  }
}

int rselect(int count, fd_set* read, fd_set* write, fd_set* except, timeval* timeout) {
  if (count < 0 || count > FD_SETSIZE) return as_c(EINVAL);
  const Sets sets{read, write, except};
  auto fds = as_poll(count, sets);
  int timeout_ms = -1;
  if (timeout != nullptr) {
    if (timeout->tv_sec < 0 || timeout->tv_usec < 0) return as_c(EINVAL);
    timeout_ms = static_cast<int>(std::min<std::int64_t>(timeout->tv_sec, INT32_MAX / 1000 - 1) * 1000 +
                                  (timeout->tv_usec + 999) / 1000);
  }
  const int ready = rpoll(fds.data(), fds.size(), timeout_ms);
  if (ready < 0) return -1;
  for (const pollfd& fd : fds) {
    if ((fd.revents & POLLNVAL) != 0) return as_c(EBADF);
  }
  for (fd_set* set : {read, write, except}) {
    if (set != nullptr) FD_ZERO(set);
  }
  return fill(fds, sets);
}

}  // extern "C"
