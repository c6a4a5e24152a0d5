#include "rnic/congestion/dctcp.hpp"

#include <algorithm>

namespace weir::rnic::congestion {

void Dctcp::on_ack(const DctcpParameters& parameters, const PathFacts& path, const Feedback& feedback) {
  ++acks_;
  marked_ += feedback.marked;
  if (feedback.acknowledged > round_end_) {
    alpha_ = (1 - parameters.g) * alpha_ + parameters.g * marked_ / acks_;
    if (marked_ == 0) rate_ += parameters.additive_increase * path.line_rate;
    round_end_ = feedback.next;
    acks_ = marked_ = 0;
    cut_ = false;
  }
  // The first mark cuts at once, and not at the end of its round; a second one of the round changes nothing.
  if (feedback.marked && !cut_) {
    rate_ *= 1 - alpha_ / 2;
    cut_ = true;
  }
  rate_ = std::clamp(rate_, parameters.minimum_rate * path.line_rate, path.line_rate);
}

}  // namespace weir::rnic::congestion
