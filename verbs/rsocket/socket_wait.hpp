// How a call of an rsocket waits. Included by socket.hpp.
#pragma once

#include <sched.h>

#include <cerrno>
#include <chrono>

#include "verbs/rsocket/interruption.hpp"
#include "verbs/rsocket/socket.hpp"

namespace weir::rsocket {

template <class TryOnce>
bool try_a_while(TryOnce try_once, int tries_between_yields) {
  // polling_time (rsocket(7)) of trying, in which the processor is offered to others: the peer may need this
  // one.
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(Defaults::get().polling_us);
  do {
    for (int i = 0; i < tries_between_yields; ++i) {
      if (try_once()) return true;
    }
    ::sched_yield();
  } while (std::chrono::steady_clock::now() < end);
  return try_once();
}

template <class Done>
int Socket::locked_wait(std::unique_lock<std::mutex>& hold, Done done) {
  return locked_wait_for(hold, -1, done);
}

template <class Done>
int Socket::locked_wait_for(std::unique_lock<std::mutex>& hold, int limit_ms, Done done) {
  using Clock = std::chrono::steady_clock;
  if (done()) return 0;
  const auto end = Clock::now() + std::chrono::milliseconds(limit_ms);
  const bool soon = try_a_while([&] {
    hold.unlock();
    hold.lock();
    return done();
  });
  if (soon) return 0;
  for (;;) {
    int left_ms = -1;
    if (limit_ms >= 0) {
      left_ms =
          static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count());
      if (left_ms <= 0) return EAGAIN;
    }
    Waiter& waiter = Waiter::mine();
    waiter.clear();
    std::vector<pollfd> others;
    locked_prepare_sleep(others);
    int error = 0;
    {
      const Listed listed(watchers_, waiter, hold);
      if (done()) return 0;
      hold.unlock();
      if (waiter.sleep(others, left_ms) < 0) error = errno;
      hold.lock();
    }
    if (done()) return 0;
    if (error != 0 && (error != EINTR || !handlers_restart_calls())) return error;
  }
}

}  // namespace weir::rsocket
