#include "rnic/congestion/hpcc.hpp"

#include <algorithm>

namespace weir::rnic::congestion {

// MeasureInflight: of the link with the highest load.
void Hpcc::measure(const PathFacts& path, std::span<const LinkReading> links) {
  double most = 0;
  Time over = 0;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const LinkReading& now = links[i];
    const LinkReading& before = last_[i];
    // Readings of one packet or out of order say nothing of a rate.
    if (now.time <= before.time) continue;
    const Time elapsed = now.time - before.time;
    const double sent = static_cast<double>(now.sent_bytes - before.sent_bytes) * 8 * path.time_units_per_s /
                        static_cast<double>(elapsed);
    const double queued = std::min(now.queue_bytes, before.queue_bytes) * 8.0 * path.time_units_per_s /
                          static_cast<double>(path.base_rtt);
    const double load = (sent + queued) / now.rate;
    if (load <= most) continue;
    most = load;
    over = elapsed;
  }
  const double part = static_cast<double>(std::min(over, path.base_rtt)) / static_cast<double>(path.base_rtt);
  load_ = (1 - part) * load_ + part * most;
}

void Hpcc::on_ack(const HpccParameters& parameters, const PathFacts& path, const Feedback& feedback) {
  const auto links = feedback.links.first(std::min(feedback.links.size(), max_links));
  // The first acknowledgement, and one over another path, only begin the readings.
  const bool comparable = known_ == links.size() && known_ != 0;
  if (comparable) {
    measure(path, links);
    const double excess = load_ / parameters.target;
    const bool follow = excess >= 1 || stage_ >= parameters.stages;
    rate_ = (follow && excess > 0 ? reference_ / excess : reference_) +
            parameters.additive_increase * path.line_rate;
    rate_ = std::clamp(rate_, parameters.minimum_rate * path.line_rate, path.line_rate);
    if (feedback.acknowledged > round_end_) {
      stage_ = follow ? 0 : stage_ + 1;
      reference_ = rate_;
      round_end_ = feedback.next;
    }
  } else {
    round_end_ = feedback.next;
  }
  std::ranges::copy(links, last_.begin());
  known_ = links.size();
}

}  // namespace weir::rnic::congestion
