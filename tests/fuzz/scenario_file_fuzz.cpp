// Reads scenario files. A file that is read without complaint must be possible to prepare and simulate for a
// while. Any other file must cause a complaint.
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
