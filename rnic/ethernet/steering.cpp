#include "rnic/ethernet/steering.hpp"

namespace weir::rnic {

std::optional<std::uint32_t> Steering::add(std::uint32_t qp_index, const FlowMatch& match) {
  const std::lock_guard lock(mutex_);
  return rules().add(qp_index, [&](SteeringRule& rule) {
    rule.priority = match.priority;
    rule.value = match.value;
    rule.mask = match.mask;
  });
}

void Steering::remove(std::uint32_t rule) {
  const std::lock_guard lock(mutex_);
  segment_.header().steering[rule].qp.store(0, std::memory_order_release);
}

void Steering::forget(std::uint32_t qp_index) {
  const std::lock_guard lock(mutex_);
  rules().forget(qp_index);
}

QpEntries<SteeringRule> Steering::rules() const {
  SegmentHeader& header = segment_.header();
  return {header.steering, header.steering_used};
}

}  // namespace weir::rnic
