// The loop of reactors that use Asio streams: one io_context, run by hand.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "cli/client/connection.hpp"

namespace weir::client {

class AsioLoop {
 public:
  asio::io_context& context() { return context_; }

  // Runs a limited number of handlers: one that polls a device posts itself again for ever.
  void turn(std::chrono::nanoseconds limit) {
    constexpr int handlers_a_turn = 64;
    // Asio's wait is in whole milliseconds, but its timers are exact.
    if (limit > limit.zero() && limit < exact_below) {
      timer_.expires_after(limit);
      timer_.async_wait([](std::error_code) {});
    }
    if (context_.run_one_for(limit) == 0) return;
    for (int i = 1; i < handlers_a_turn && context_.poll_one() != 0; ++i) {
    }
  }

  // Runs until done() or the time limit; returns done().
  template <class Done>
  bool turn_until(Done done, Milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!done()) {
      const auto left = std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return false;
      turn(left);
    }
    return true;
  }

 private:
  static constexpr Milliseconds exact_below{5};

  asio::io_context context_{1};  // one thread: no locks inside
  asio::steady_timer timer_{context_};
  asio::executor_work_guard<asio::io_context::executor_type> stays_open_{context_.get_executor()};
};

}  // namespace weir::client
