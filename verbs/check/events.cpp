// Completion events: not acknowledged, or waited for although the completion is there already; and CQs that
// hold more than they have room for.
#include <poll.h>

#include <chrono>
#include <thread>

#include "verbs/check/checks.hpp"
#include "verbs/check/findings.hpp"
#include "verbs/check/inspection.hpp"
#include "verbs/check/names.hpp"

namespace weir::check {
namespace {

// Another thread may be about to acknowledge.
constexpr std::chrono::milliseconds patience{1000}, pause{5};

std::size_t unpolled(ibv_cq* cq) {
  static auto* const count = next_call<decltype(weir_unpolled)>("weir_unpolled");
  return count != nullptr ? count(cq) : 0;
}

bool is_readable(int fd) {
  pollfd look{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&look, 1, 0) > 0;
}

bool would_block(int fd) {
  static auto* const flags = next_call<int(int, int, ...)>("fcntl");
  constexpr int get_flags = 3, nonblocking = 04000;  // F_GETFL, O_NONBLOCK
  return (flags(fd, get_flags) & nonblocking) == 0 && !is_readable(fd);
}

}  // namespace

void event_taken(CompletionQueueRecord& cq) {
  const std::lock_guard lock(cq.mutex);
  ++cq.events_taken;
  cq.event_taken = place_here();
  cq.armed = false;
}

void events_acknowledged(CompletionQueueRecord& cq, unsigned count) {
  const std::lock_guard lock(cq.mutex);
  cq.events_acknowledged += count;
  if (cq.events_acknowledged <= cq.events_taken) return;
  Report(Rule::acknowledged_too_many,
         std::to_string(cq.events_acknowledged) + " events of a CQ are acknowledged, and only " +
             std::to_string(cq.events_taken) + " were taken",
         "called", place_here())
      .place("taken", cq.event_taken)
      .print();
}

// ibv_destroy_cq() then waits for ever.
void about_to_destroy(CompletionQueueRecord& cq) {
  const auto outstanding = [&] {
    const std::lock_guard lock(cq.mutex);
    return cq.events_taken - std::min(cq.events_acknowledged, cq.events_taken);
  };
  const auto give_up = std::chrono::steady_clock::now() + patience;
  while (outstanding() != 0 && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(pause);
  const auto missing = outstanding();
  if (missing == 0) return;
  Report(Rule::event_not_acknowledged,
         "ibv_destroy_cq() waits for ever: " + count_of(missing, "event") + " of the CQ " +
             (missing == 1 ? "was" : "were") + " taken and not acknowledged",
         "called", place_here())
      .place("taken", cq.event_taken)
      .print();
}

void about_to_arm(CompletionQueueRecord& cq, const CallSite& at) {
  const std::size_t held = unpolled(cq.cq);
  const std::lock_guard lock(cq.mutex);
  cq.armed = true;
  cq.polled = false;
  cq.held_when_armed = held;
  cq.armed_at = at.place();
}

void about_to_wait(ibv_comp_channel& channel) {
  if (!would_block(channel.fd)) return;
  for (const auto& cq : all_completion_queues()) {
    if (cq->cq->channel != &channel) continue;
    std::unique_lock lock(cq->mutex);
    const bool missed = cq->armed && !cq->polled && cq->held_when_armed != 0;
    lock.unlock();
    if (!missed || unpolled(cq->cq) == 0 || is_readable(channel.fd)) continue;
    Report(Rule::slept_on_completion,
           "the program waits for an event, but " + count_of(cq->held_when_armed, "completion") +
               " came before the CQ was armed, and nobody has polled since",
           "waits", place_here())
        .place("armed", cq->armed_at)
        .print();
  }
}

void about_to_poll(CompletionQueueRecord& cq, const CallSite& at) {
  {
    const std::lock_guard lock(cq.mutex);
    cq.polled = true;
  }
  const std::size_t held = unpolled(cq.cq);
  if (held <= static_cast<std::size_t>(cq.cq->cqe)) return;
  Report(Rule::cq_overrun,
         "the CQ has room for " + count_of(static_cast<std::size_t>(cq.cq->cqe), "completion") + ", but " +
             std::to_string(held) + " are in it",
         "polled", at.place())
      .print();
}

}  // namespace weir::check
