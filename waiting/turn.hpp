// How long one client or listener may go on before the others get their turn.
//
// A thread serves many. A client, or a way to reach the server, that has more work than fits into this time
// goes on after all the others have had a turn; so each waits for at most as many turns as there are others
// with much work. Work that has begun is finished: one request may take longer.
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
