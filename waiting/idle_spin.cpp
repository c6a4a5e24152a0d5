#include "waiting/idle_spin.hpp"

#include <sched.h>

#include <asio/post.hpp>
#include <utility>

#include "waiting/cpu_relax.hpp"

namespace weir::waiting {

namespace {

using Clock = std::chrono::steady_clock;

// One client alone waits for half of it. 50 us served redis-benchmark's 50 connections no better, 1 us worse.
constexpr std::chrono::microseconds between_looks{8};

void relax_until(Clock::time_point end) {
  while (Clock::now() < end) cpu_relax();
}

}  // namespace

IdleSpin::IdleSpin(asio::io_context& io, std::chrono::microseconds longest, std::function<bool()> others_poll)
    : io_(io), policy_(longest), others_poll_(std::move(others_poll)) {}

void IdleSpin::worked() {
  next_ = yield;
  if (policy_.worked(Clock::now())) post();
}

void IdleSpin::post() {
  if (std::exchange(posted_, true)) return;
  asio::post(io_, [this, alive = alive_] {
    if (!*alive) return;
    posted_ = false;
    turn();
  });
}

// The loop looks at its sockets between two turns, and queues what it found behind the next: so every other
// turn only gives way. A client on this very core runs while it is yielded, so that comes first.
void IdleSpin::turn() {
  const Clock::time_point now = Clock::now();
  switch (std::exchange(next_, static_cast<Step>((next_ + 1) % steps))) {
    case yield:
      if (others_poll_() || !policy_.look_again(now)) return;
      sched_yield();
      policy_.yielded(now, Clock::now());
      break;
    case wait:
      if (policy_.look_again(now)) relax_until(now + between_looks);
      break;
    default:
      break;
  }
  post();
}

}  // namespace weir::waiting
