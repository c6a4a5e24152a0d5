// What our blocking calls must check that the kernel's own calls know by themselves.
#pragma once

#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <optional>

namespace weir::sockets {

// After EINTR of a sleep: whether the program's own call would have returned it, because a handler was
// installed without SA_RESTART. Nothing says which signal it was, so one such handler is enough.
inline bool interrupted_for_good() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action{};
    if (::sigaction(signal, nullptr, &action) != 0) continue;
    const bool handled =
        (action.sa_flags & SA_SIGINFO) != 0 || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
    if (handled && (action.sa_flags & SA_RESTART) == 0) return true;
  }
  return false;
}

using Timeout = std::optional<std::chrono::nanoseconds>;  // nullopt: for ever

// SO_RCVTIMEO or SO_SNDTIMEO.
inline Timeout timeout_of(int fd, bool sends) {
  timeval limit{};
  socklen_t size = sizeof limit;
  if (::getsockopt(fd, SOL_SOCKET, sends ? SO_SNDTIMEO : SO_RCVTIMEO, &limit, &size) != 0 ||
      (limit.tv_sec == 0 && limit.tv_usec == 0))
    return std::nullopt;
  return std::chrono::seconds(limit.tv_sec) + std::chrono::microseconds(limit.tv_usec);
}

// How long to sleep now; nullopt: time is up. A thread that nobody can wake looks every two milliseconds.
inline std::optional<timespec> sleep_limit(const Timeout& timeout,
                                           std::chrono::steady_clock::time_point begun, bool can_be_woken) {
  constexpr std::chrono::nanoseconds nap = std::chrono::milliseconds(2), longest = std::chrono::hours(1);
  std::chrono::nanoseconds left = longest;
  if (timeout) {
    left = *timeout - (std::chrono::steady_clock::now() - begun);
    if (left <= std::chrono::nanoseconds::zero()) return std::nullopt;
  }
  left = std::min(left, can_be_woken ? longest : nap);
  return timespec{.tv_sec = left / std::chrono::seconds(1),
                  .tv_nsec = (left % std::chrono::seconds(1)).count()};
}

}  // namespace weir::sockets
