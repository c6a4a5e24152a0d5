#include "verbs/nic/slow_receiver.hpp"

#include <chrono>
#include <utility>

namespace weir::verbs {

SlowReceiver::SlowReceiver(faults::Plan plan, link::SameHostLink& link, link::Clock::time_point begun,
                           Withhold withhold)
    : link_(link), begun_(begun), withhold_(std::move(withhold)), faults_(std::move(plan)) {}

std::uint64_t SlowReceiver::now_ns() const {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(link::Clock::now() - begun_).count());
}

void SlowReceiver::arm(std::uint32_t qpn, const QueuePair& of) {
  withhold_(qpn, static_cast<std::uint32_t>(faults_.next(of.order, of.passed + 1ull, now_ns()).value_or(0)));
}

void SlowReceiver::queue_pair_made(std::uint32_t qpn, std::uint64_t order) {
  const std::lock_guard lock(mutex_);
  if (!faults_.any()) return;
  const QueuePair& made = queue_pairs_[qpn] = {.order = order};
  arm(qpn, made);
}

void SlowReceiver::withheld(std::uint32_t qpn, std::uint32_t message) {
  const std::lock_guard lock(mutex_);
  const auto found = queue_pairs_.find(qpn);
  if (found == queue_pairs_.end()) return;
  const std::uint64_t now = now_ns();
  const std::uint64_t passes_at_ns = faults_.refused(found->second.order, message, now);
  if (passes_at_ns <= now) return let_pass(qpn, message);
  if (passes_at_ns == faults::ReceiveFaults::for_ever) return;
  link_.at(begun_ + std::chrono::nanoseconds(passes_at_ns),
           [this, qpn, message, order = found->second.order] {
             const std::lock_guard held(mutex_);
             if (queue_pairs_[qpn].order == order)
               let_pass(qpn, message);  // else the number is another's by now
           });
}

void SlowReceiver::let_pass(std::uint32_t qpn, std::uint32_t message) {
  QueuePair& of = queue_pairs_[qpn];
  of.passed = message;
  arm(qpn, of);
}

void SlowReceiver::schedule() {
  const std::lock_guard lock(mutex_);
  for (const std::uint64_t at_ns : faults_.turning_points())
    link_.at(begun_ + std::chrono::nanoseconds(at_ns), [this] {
      const std::lock_guard held(mutex_);
      for (const auto& [qpn, of] : queue_pairs_) arm(qpn, of);
    });
}

}  // namespace weir::verbs
