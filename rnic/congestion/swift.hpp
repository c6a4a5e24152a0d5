// Swift ("Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020,
// section 3), with the window as a rate: the round trip of each acknowledgement against a target delay, which
// is larger for flows with a small window. Below one packet in flight the rate paces.
#pragma once

#include "rnic/congestion/feedback.hpp"

namespace weir::rnic::congestion {

struct SwiftParameters {
  double target = 1.25;           // base target delay, in round trips without queues
  double flow_scaling = 1;        // range of the target by the window, in round trips; 0: the same for all
  double smallest_window = 0.1;   // packets; windows between these two scale the target
  double largest_window = 100;    // packets
  double additive_increase = 1;   // packets for each round trip
  double beta = 0.8;              // how strongly excess delay cuts
  double largest_decrease = 0.5;  // for each round trip
  double minimum_window = 0.001;  // packets
};

class Swift {
 public:
  explicit Swift(double line_rate = 0) : rate_(line_rate) {}

  double rate() const { return rate_; }
  // In round trips.
  double target(const SwiftParameters& parameters, double window_packets) const;
  void on_ack(const SwiftParameters& parameters, const PathFacts& path, const Feedback& feedback);

 private:
  double rate_;
  std::uint32_t acknowledged_ = 0;
  Time decrease_allowed_ = 0;
};

}  // namespace weir::rnic::congestion
