#include "rnic/steering.hpp"

namespace weir::rnic {

std::optional<std::uint32_t> Steering::add(std::uint32_t qp_index, const FlowMatch& match) {
  const std::lock_guard lock(mutex_);
  SegmentHeader& header = segment_.header();
  const std::uint32_t used = header.steering_used.load(std::memory_order_relaxed);
  std::uint32_t i = 0;
  while (i < used && header.steering[i].qp.load(std::memory_order_relaxed) != 0) ++i;
  if (i == max_steering_rules) return std::nullopt;
  SteeringRule& rule = header.steering[i];
  rule.priority = match.priority;
  rule.value = match.value;
  rule.mask = match.mask;
  // release: a sender that sees the queue pair must see what goes to it.
  rule.qp.store(qp_index + 1, std::memory_order_release);
  if (i == used) header.steering_used.store(used + 1, std::memory_order_release);
  return i;
}

void Steering::remove(std::uint32_t rule) {
  const std::lock_guard lock(mutex_);
  segment_.header().steering[rule].qp.store(0, std::memory_order_release);
}

void Steering::forget(std::uint32_t qp_index) {
  const std::lock_guard lock(mutex_);
  SegmentHeader& header = segment_.header();
  const std::uint32_t used = header.steering_used.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < used; ++i)
    if (header.steering[i].qp.load(std::memory_order_relaxed) == qp_index + 1)
      header.steering[i].qp.store(0, std::memory_order_release);
}

}  // namespace weir::rnic
