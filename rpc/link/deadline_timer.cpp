#include "rpc/link/deadline_timer.hpp"

#include <utility>

namespace weir::rpc {

DeadlineTimer::DeadlineTimer(FrameLink& link, EndLate end_late)
    : link_(link), end_late_(std::move(end_late)), timer_(link.io()) {}

namespace {

// About ten times the cost of looking at the calls. A few calls need no pause.
Deadline::duration pause_after(std::size_t calls) {
  constexpr std::size_t few = 256;
  constexpr std::chrono::nanoseconds for_each{500};
  if (calls < few) return {};
  return std::min<std::chrono::nanoseconds>(for_each * calls, DeadlineTimer::most_pause);
}

}  // namespace

void DeadlineTimer::arm(Deadline at) {
  armed_for_ = no_deadline;
  timer_.expires_at(at);
  timer_.async_wait([this, weak = link_.weak_from_this()](const std::error_code& error) {
    const auto link = weak.lock();
    if (!error && link) look();
  });
  armed_for_ = at;  // last: waiting may run out of memory
}

void DeadlineTimer::look() {
  armed_for_ = no_deadline;  // before calls end, because others may begin then
  const Look seen = end_late_(std::chrono::steady_clock::now());
  if (const auto pause = pause_after(seen.calls); pause.count() > 0)
    pause_ends_ = std::chrono::steady_clock::now() + pause;
  keep(seen.next);
}

}  // namespace weir::rpc
