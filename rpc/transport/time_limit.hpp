// A time limit for a coroutine, which keeps it beside what it limits: when the time is over, `end` runs,
// once. When the limit is destroyed nothing of it is left: neither a wait, nor a handler that is already in
// the io_context's queue because the time ran out in the same turn.
//
// Threading: the executor's thread.
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "rpc/wire/deadline.hpp"

namespace weir::rpc {

class TimeLimit {
 public:
  TimeLimit(const asio::any_io_executor& executor, std::chrono::milliseconds limit, std::function<void()> end)
      : state_(std::make_shared<State>(executor, std::move(end))) {
    state_->timer.expires_at(deadline_from(Deadline::clock::now(), limit));
    state_->timer.async_wait([weak = std::weak_ptr(state_)](const std::error_code& cancelled) {
      const auto state = weak.lock();
      if (cancelled || !state) return;
      state->passed = true;
      state->end();
    });
  }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  bool passed() const { return state_->passed; }

 private:
  struct State {
    State(const asio::any_io_executor& executor, std::function<void()> at_end)
        : timer(executor), end(std::move(at_end)) {}
    asio::steady_timer timer;
    const std::function<void()> end;
    bool passed = false;
  };
  const std::shared_ptr<State> state_;
};

}  // namespace weir::rpc
