// When a link looks for calls that are late: one timer for all of them, at the earliest deadline that was
// asked of it. Most calls end long before their deadlines, and the timer does not hear of that: a call costs
// no more than a comparison, and it is seldom that all have to be looked at.
//
// Invariant: while the link lives and its calls were not given up (cancel()), every deadline that was kept is
// followed by a look, at that time or before.
//
// Ownership: a member of the link that it watches, which it holds while the link is told and not otherwise.
// Threading: the io_context's thread.
#pragma once

#include <asio/steady_timer.hpp>
#include <functional>

#include "rpc/frame_link.hpp"

namespace weir::rpc {

class DeadlineTimer {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr TimePoint never = TimePoint::max();
  // Ends the calls that are late at `now`, and tells the earliest deadline of the others, or `never`. Those
  // of calls that begin meanwhile may be kept as ever.
  using EndLate = std::function<TimePoint(TimePoint now)>;

  DeadlineTimer(FrameLink& link, EndLate end_late);

  void keep(TimePoint deadline) {
    if (deadline < armed_for_) arm(deadline);
  }
  // `timeout` from `now` on; `never` where that is beyond the end of time.
  template <class Duration>
  static TimePoint after(TimePoint now, Duration timeout) {
    return timeout < std::chrono::duration_cast<Duration>(never - now) ? now + timeout : never;
  }
  // All calls have ended.
  void cancel() { timer_.cancel(); }

 private:
  void arm(TimePoint deadline);
  void look();

  FrameLink& link_;
  const EndLate end_late_;
  asio::steady_timer timer_;
  TimePoint armed_for_ = never;
};

}  // namespace weir::rpc
