// HPCC ("High Precision Congestion Control", SIGCOMM 2019, algorithm 1), with the window as a rate: W = R T.
// Every switch writes its queue, its bytes sent and the time into the packet; the receiver returns them. The
// busiest link's load, queue included, against the target gives the rate. Within a round trip every
// acknowledgement changes the rate, from the same reference rate; once a round the reference follows.
#pragma once

#include <array>
#include <cstdint>

#include "rnic/congestion/feedback.hpp"

namespace weir::rnic::congestion {

struct HpccParameters {
  double target = 0.95;              // eta: of a link's capacity
  std::uint32_t stages = 5;          // rounds of additive increase before the load is followed again
  double additive_increase = 0.001;  // W_ai, part of the line rate
  double minimum_rate = 0.01;        // part of the line rate
};

class Hpcc {
 public:
  static constexpr std::size_t max_links = 8;  // those behind are not looked at

  explicit Hpcc(double line_rate = 0) : rate_(line_rate), reference_(line_rate) {}

  double rate() const { return rate_; }
  double load() const { return load_; }
  void on_ack(const HpccParameters& parameters, const PathFacts& path, const Feedback& feedback);

 private:
  void measure(const PathFacts& path, std::span<const LinkReading> links);

  double rate_;
  double reference_;  // W_c
  double load_ = 1;   // U, smoothed over a round trip
  std::uint32_t stage_ = 0;
  std::uint32_t round_end_ = 0;  // lastUpdateSeq
  std::size_t known_ = 0;        // links whose last reading is known
  std::array<LinkReading, max_links> last_;
};

}  // namespace weir::rnic::congestion
