// The C library's calls that wait for descriptors. Entry points for other people's programs.
//
// Before a call that may sleep, the same question is asked without waiting, for a while. A signal meanwhile
// runs its handler, and the call goes on, as if the signal had come before it; a mask holds for the sleep
// alone.
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <array>
#include <cstring>

#include "verbs/look/before_sleep.hpp"

// How many completion channels the process has; of libibverbs.so.1, which weir run preloads, too.
extern "C" [[gnu::weak]] unsigned weir_open_channels();

namespace {

using weir::verbs::look::before_sleep;

template <class Call>
Call* real(const char* name) {
  return reinterpret_cast<Call*>(::dlsym(RTLD_NEXT, name));
}
#define WEIR_REAL(type, name) static auto* const call = real<type>(#name)

bool waits_for_completions() { return weir_open_channels != nullptr && weir_open_channels() != 0; }
bool may_look(int timeout_ms) { return timeout_ms != 0 && waits_for_completions(); }

constexpr long shortest_ns = 1'000'000;  // a wait that is not worth a look
bool may_look(const timespec* timeout) {
  return (timeout == nullptr || timeout->tv_sec > 0 || timeout->tv_nsec >= shortest_ns) &&
         waits_for_completions();
}
bool may_look(const timeval* timeout) {
  return (timeout == nullptr || timeout->tv_sec > 0 || timeout->tv_usec >= shortest_ns / 1000) &&
         waits_for_completions();
}

// What `ask`, which does not wait, found; 0: sleep.
template <class Ask>
int look(Ask ask) {
  int found = 0;
  before_sleep([&] {
    found = ask();
    return found != 0;
  });
  return found;
}

int ask(pollfd* fds, nfds_t count) {
  WEIR_REAL(int(pollfd*, nfds_t, int), poll);
  return call(fds, count, 0);
}

// select() answers in its arguments, so each look has a copy.
int look_at_sets(int count, fd_set* read, fd_set* write, fd_set* except) {
  WEIR_REAL(int(int, fd_set*, fd_set*, fd_set*, timeval*), select);
  if (count < 0 || count > FD_SETSIZE) return 0;
  const std::array<fd_set*, 3> asked{read, write, except};
  const std::size_t bytes = static_cast<std::size_t>(count + 63) / 64 * 8;
  std::array<fd_set, 3> seen;
  const auto at = [&](std::size_t i) { return asked[i] != nullptr ? &seen[i] : nullptr; };
  const int found = look([&] {
    for (std::size_t i = 0; i < asked.size(); ++i)
      if (asked[i] != nullptr) std::memcpy(&seen[i], asked[i], bytes);
    timeval none{};
    return call(count, at(0), at(1), at(2), &none);
  });
  if (found > 0)
    for (std::size_t i = 0; i < asked.size(); ++i)
      if (asked[i] != nullptr) std::memcpy(asked[i], &seen[i], bytes);
  return found;
}

}  // namespace

extern "C" {

int epoll_wait(int set, epoll_event* events, int most, int timeout) {
  WEIR_REAL(int(int, epoll_event*, int, int), epoll_wait);
  if (may_look(timeout))
    if (const int found = look([&] { return call(set, events, most, 0); }); found != 0) return found;
  return call(set, events, most, timeout);
}

int epoll_pwait(int set, epoll_event* events, int most, int timeout, const sigset_t* mask) {
  WEIR_REAL(int(int, epoll_event*, int, int, const sigset_t*), epoll_pwait);
  if (may_look(timeout))
    if (const int found = look([&] { return call(set, events, most, 0, nullptr); }); found != 0) return found;
  return call(set, events, most, timeout, mask);
}

int poll(pollfd* fds, nfds_t count, int timeout) {
  WEIR_REAL(int(pollfd*, nfds_t, int), poll);
  if (may_look(timeout))
    if (const int found = look([&] { return ask(fds, count); }); found != 0) return found;
  return call(fds, count, timeout);
}

int __poll_chk(pollfd* fds, nfds_t count, int timeout, size_t limit) {
  WEIR_REAL(int(pollfd*, nfds_t, int, size_t), __poll_chk);
  if (count <= limit / sizeof *fds && may_look(timeout))
    if (const int found = look([&] { return ask(fds, count); }); found != 0) return found;
  return call(fds, count, timeout, limit);
}

int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  WEIR_REAL(int(pollfd*, nfds_t, const timespec*, const sigset_t*), ppoll);
  if (may_look(timeout))
    if (const int found = look([&] { return ask(fds, count); }); found != 0) return found;
  return call(fds, count, timeout, mask);
}

int select(int count, fd_set* read, fd_set* write, fd_set* except, timeval* timeout) {
  WEIR_REAL(int(int, fd_set*, fd_set*, fd_set*, timeval*), select);
  if (may_look(timeout))
    if (const int found = look_at_sets(count, read, write, except); found != 0) return found;
  return call(count, read, write, except, timeout);
}

int pselect(int count, fd_set* read, fd_set* write, fd_set* except, const timespec* timeout,
            const sigset_t* mask) {
  WEIR_REAL(int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*), pselect);
  if (may_look(timeout))
    if (const int found = look_at_sets(count, read, write, except); found != 0) return found;
  return call(count, read, write, except, timeout, mask);
}

}  // extern "C"
