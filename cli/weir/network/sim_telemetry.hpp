// Streams the counters of a run while it runs, for `weir sim --telemetry`, under SONiC's names. The module in
// telemetry/ does the transport.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "cli/weir/telemetry/telemetry_module.hpp"
#include "fabric/sim/simulation.hpp"

namespace weir::command {

class SimTelemetry {
 public:
  // `began`: ns since the epoch, the start of simulated time. The error says why there is no module.
  static std::expected<SimTelemetry, std::string> open(const std::string& collector,
                                                       std::uint64_t queue_bytes, std::int64_t began);
  SimTelemetry(SimTelemetry&& other) noexcept;
  SimTelemetry& operator=(SimTelemetry&&) = delete;
  ~SimTelemetry();

  // Sends all counters of each node where some changed since the last call; nothing for the other nodes.
  void send(const fabric::sim::Simulation& simulation);
  // Waits for the collector, at most so long.
  TelemetryCounts close(std::uint32_t wait_ms);

 private:
  SimTelemetry(const TelemetryModule& module, void* publisher, std::int64_t began);
  void send_node(const fabric::sim::Simulation& simulation, std::uint32_t node,
                 const std::vector<std::uint32_t>& ports);

  const TelemetryModule* module_;
  void* publisher_;
  std::int64_t began_, last_ = 0;
  std::string sender_;
  std::vector<std::vector<std::uint32_t>> ports_of_;  // by node
  std::vector<std::string> sent_;                     // three texts per port: what was sent last
};

}  // namespace weir::command
