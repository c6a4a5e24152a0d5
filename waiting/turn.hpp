// How long one may go on before it is the others' turn.
//
// A thread serves many. Whoever has more to do than fits into this time, be it a client or a way to reach the
// server, goes on when everybody else has had a turn; so others wait for as many turns as there are those
// with much to do. What is begun is finished: one request may take longer.
//
// Threading: none.
#pragma once

#include <chrono>

namespace weir::waiting {

class Turn {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds length{1};

  explicit Turn(Clock::time_point now = Clock::now()) : ends_(now + length) {}
  bool over(Clock::time_point now = Clock::now()) const { return now >= ends_; }

 private:
  Clock::time_point ends_;
};

}  // namespace weir::waiting
