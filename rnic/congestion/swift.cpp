#include "rnic/congestion/swift.hpp"

#include <algorithm>
#include <cmath>

namespace weir::rnic::congestion {

// Section 3.5: the target falls with 1/sqrt(window), between the two windows by flow_scaling in all.
double Swift::target(const SwiftParameters& parameters, double window) const {
  const double small = 1 / std::sqrt(parameters.smallest_window);
  const double large = 1 / std::sqrt(parameters.largest_window);
  const double part = (1 / std::sqrt(window) - large) / (small - large);
  return parameters.target + parameters.flow_scaling * std::clamp(part, 0.0, 1.0);
}

void Swift::on_ack(const SwiftParameters& parameters, const PathFacts& path, const Feedback& feedback) {
  double window = rate_ / path.packet_rate();
  const auto news = feedback.acknowledged - std::min(acknowledged_, feedback.acknowledged);
  acknowledged_ = std::max(acknowledged_, feedback.acknowledged);
  const double delay = static_cast<double>(feedback.round_trip) / static_cast<double>(path.base_rtt);
  const double target = this->target(parameters, window);
  if (delay < target) {
    window += parameters.additive_increase * news / std::max(window, 1.0);
  } else if (feedback.now >= decrease_allowed_) {
    window *= std::max(1 - parameters.beta * (delay - target) / delay, 1 - parameters.largest_decrease);
    decrease_allowed_ = feedback.now + feedback.round_trip;
  }
  rate_ = std::min(std::max(window, parameters.minimum_window) * path.packet_rate(), path.line_rate);
}

}  // namespace weir::rnic::congestion
