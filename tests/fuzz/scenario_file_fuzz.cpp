// Scenario files. What is read without complaint must be something that can be prepared and simulated for a
// while; what is not must be complained of.
#include <cstdint>
#include <cstdlib>

#include "fabric/sim/scenario.hpp"
#include "fabric/sim/simulation.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::fabric;
  Complaints complaints;
  const auto no_files = [](const std::string&) -> std::optional<std::string> { return std::nullopt; };
  const auto scenario =
      sim::read_scenario({reinterpret_cast<const char*>(data), size}, "fuzz.toml", no_files, complaints);
  if (scenario.has_value() != complaints.none()) std::abort();
  if (!scenario || scenario->network->nodes.size() > 100) return 0;
  for (const auto& workload : scenario->workloads)
    if (workload.repeat > 100 || workload.pattern == sim::Pattern::poisson)
      return 0;  // many flows, no new paths
  const auto prepared = sim::prepare(*scenario, scenario->knobs);
  sim::Simulation simulation(prepared.fabric, prepared.experiment);
  simulation.run_some(2000);
  return 0;
}
