#include "rpc/deadline_timer.hpp"

#include <utility>

namespace weir::rpc {

DeadlineTimer::DeadlineTimer(FrameLink& link, EndLate end_late)
    : link_(link), end_late_(std::move(end_late)), timer_(link.io()) {}

void DeadlineTimer::arm(TimePoint deadline) {
  armed_for_ = deadline;
  timer_.expires_at(deadline);
  timer_.async_wait([this, weak = link_.weak_from_this()](const std::error_code& error) {
    const auto link = weak.lock();
    if (!error && link) look();
  });
}

void DeadlineTimer::look() {
  armed_for_ = never;  // before calls end: others may begin then
  keep(end_late_(std::chrono::steady_clock::now()));
}

}  // namespace weir::rpc
