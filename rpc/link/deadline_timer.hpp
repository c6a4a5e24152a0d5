// When a link looks for calls that are late: one timer for all of them, at the earliest deadline that was
// asked for. Most calls end long before their deadlines, and the timer does not learn of that: a call costs
// only a comparison, and the timer seldom has to look at all calls.
//
// Thousands of deadlines may pass one after the other while a server hangs, and each would cause a look at
// all calls. So a look is followed by a pause as long as the number of calls looked at requires, at most
// most_pause: late calls end that much later, and looking takes only a small part of the time.
//
// Invariant: while the link lives and its calls were not given up (cancel()), every deadline that was kept is
// followed by a look, at that time or before, or when the pause ends in which it falls.
//
// Ownership: a member of the link that it watches; it holds the link during a call into it and not otherwise.
// Threading: the io_context's thread.
#pragma once

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <functional>

#include "rpc/link/frame_link.hpp"
#include "rpc/wire/deadline.hpp"

namespace weir::rpc {

class DeadlineTimer {
 public:
  static constexpr std::chrono::milliseconds most_pause{20};
  struct Look {
    Deadline next = no_deadline;  // the earliest deadline of those that were not late
    std::size_t calls = 0;        // that were looked at
  };
  // Ends the calls that are late at `now`. Calls may begin meanwhile and keep their deadlines as usual.
  using EndLate = std::function<Look(Deadline now)>;

  DeadlineTimer(FrameLink& link, EndLate end_late);

  void keep(Deadline deadline) {
    const Deadline at = std::max(deadline, pause_ends_);
    if (at < armed_for_) arm(at);
  }
  // All calls have ended.
  void cancel() { timer_.cancel(); }

 private:
  void arm(Deadline at);
  void look();

  FrameLink& link_;
  const EndLate end_late_;
  asio::steady_timer timer_;
  Deadline armed_for_ = no_deadline;
  Deadline pause_ends_{};
};

}  // namespace weir::rpc
