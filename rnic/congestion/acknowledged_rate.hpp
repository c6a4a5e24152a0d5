// A flow's rate where acknowledgements set it: one of three congestion controls, chosen when the flow starts.
#pragma once

#include <variant>

#include "rnic/congestion/dctcp.hpp"
#include "rnic/congestion/hpcc.hpp"
#include "rnic/congestion/swift.hpp"

namespace weir::rnic::congestion {

struct AcknowledgedRateParameters {
  DctcpParameters dctcp;
  HpccParameters hpcc;
  SwiftParameters swift;
};

class AcknowledgedRate {
 public:
  explicit AcknowledgedRate(std::variant<Dctcp, Hpcc, Swift> control) : control_(control) {}

  double rate() const {
    return std::visit([](const auto& control) { return control.rate(); }, control_);
  }
  void on_ack(const AcknowledgedRateParameters& parameters, const PathFacts& path, const Feedback& feedback) {
    if (auto* dctcp = std::get_if<Dctcp>(&control_)) return dctcp->on_ack(parameters.dctcp, path, feedback);
    if (auto* hpcc = std::get_if<Hpcc>(&control_)) return hpcc->on_ack(parameters.hpcc, path, feedback);
    std::get<Swift>(control_).on_ack(parameters.swift, path, feedback);
  }

 private:
  std::variant<Dctcp, Hpcc, Swift> control_;
};

}  // namespace weir::rnic::congestion
