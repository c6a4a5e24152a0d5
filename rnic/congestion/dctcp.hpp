// DCTCP as a rate ("Data Center TCP", SIGCOMM 2010, section 3): the share of marked packets of each round
// trip moves alpha, a round with marks takes alpha/2 of the rate, one without adds a fixed step.
#pragma once

#include <cstdint>

#include "rnic/congestion/feedback.hpp"

namespace weir::rnic::congestion {

struct DctcpParameters {
  double g = 1.0 / 16;              // weight of the newest round in alpha
  double additive_increase = 0.01;  // each round without a mark, part of the line rate
  double minimum_rate = 0.001;      // part of the line rate
};

class Dctcp {
 public:
  explicit Dctcp(double line_rate = 0) : rate_(line_rate) {}

  double rate() const { return rate_; }
  double alpha() const { return alpha_; }
  void on_ack(const DctcpParameters& parameters, const PathFacts& path, const Feedback& feedback);

 private:
  double rate_;
  double alpha_ = 1;             // a flow expects the worst, as in Linux
  std::uint32_t round_end_ = 0;  // the round is over when this packet has been acknowledged
  std::uint32_t acks_ = 0;       // acknowledgements of this round
  std::uint32_t marked_ = 0;     // of them, with a mark
  bool cut_ = false;             // in this round
};

}  // namespace weir::rnic::congestion
