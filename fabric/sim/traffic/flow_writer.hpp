// Appends the flows of one workload to an experiment, and what precedes what.
#pragma once

#include <optional>

#include "fabric/sim/settings.hpp"

namespace weir::fabric::sim {

class FlowWriter {
 public:
  // `priority` nullopt: the transport's.
  FlowWriter(Experiment& run, std::optional<std::uint8_t> priority, std::uint16_t workload)
      : run_(run), priority_(priority), workload_(workload) {}

  // `start` no_time: after what precedes it. Returns what names it in precede().
  std::uint32_t add(std::uint32_t from, std::uint32_t to, std::uint64_t bytes, Ticks start) {
    FlowSpec flow;
    flow.source = from;
    flow.destination = to;
    flow.bytes = bytes;
    flow.start = start;
    flow.workload = workload_;
    flow.priority = priority_.value_or(flow.priority);
    run_.flows.push_back(flow);
    return static_cast<std::uint32_t>(run_.flows.size() - 1);
  }
  // A length of 0: a point that several flows lead to and several leave from.
  std::uint32_t pause(Ticks length = 0, Ticks start = no_time) {
    run_.pauses.push_back({length, start});
    return static_cast<std::uint32_t>(run_.pauses.size() - 1) | pause_bit;
  }
  void precede(std::uint32_t before, std::uint32_t after) { run_.order.push_back({before, after}); }

 private:
  Experiment& run_;
  std::optional<std::uint8_t> priority_;
  std::uint16_t workload_;
};

}  // namespace weir::fabric::sim
