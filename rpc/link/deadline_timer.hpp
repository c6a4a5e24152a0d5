// When a link checks for late calls: one timer for all calls, set to the earliest deadline that was
// requested. Most calls end long before their deadlines, and the timer is not told. So a call costs only a
// comparison, and the timer seldom has to check all calls.
//
// While a server hangs, thousands of deadlines may pass one after another, and each would cause a check of
// all calls. So a check is followed by a pause in proportion to the number of checked calls, at most
// most_pause: late calls end that much later, and checking takes only a small part of the time.
//
// Invariant: while the link lives and its calls were not given up (cancel()), every deadline that was kept is
// followed by a check, at that time or earlier, or at the end of the pause in which it falls.
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
    std::size_t calls = 0;        // how many calls were checked
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
