// The traffic of the hosts: patterns that become lists of flows. Pure: the same settings and
// seed give the same flows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fabric/sim/knobs.hpp"
#include "fabric/sim/settings.hpp"

namespace weir::fabric::sim {

struct SizeDistribution;

enum class Pattern : std::uint8_t { incast, permutation, all_to_all, flows, poisson, ring_allreduce };

struct ListedFlow {
  std::uint32_t from = 0, to = 0;
  std::uint64_t bytes = 0;
  Ticks start = 0;
};

struct Workload {
  std::string name;
  Pattern pattern = Pattern::incast;
  std::optional<std::uint8_t> priority = {};  // absent: the transport's
  std::uint64_t bytes = 1'000'000;            // per flow; for ring_allreduce: the whole vector
  Ticks start = 0;
  std::vector<std::uint32_t> hosts;         // participants in order; for incast: the senders
  std::uint32_t receiver = 0;               // incast
  std::uint32_t repeat = 1;                 // incast, permutation, all_to_all
  Ticks every = ticks_per_ms;               // between repetitions
  const SizeDistribution* sizes = nullptr;  // poisson
  double load = 0.5;                        // poisson: of each sender's link
  Ticks until = 0;                          // poisson: flows start before this
  std::vector<ListedFlow> listed;           // flows
};

// Appends the flows of `workload`. Packets' headers and gaps, from `transport`, count towards its load.
void append_flows(std::vector<FlowSpec>& flows, const Workload& workload, std::uint16_t index,
                  const Fabric& fabric, const Transport& transport, std::uint64_t seed);

// The operation that users see in `workload`; nullopt: it is not a collective, or is repeated.
std::optional<Collective> collective_of(const Workload& workload, std::uint16_t index);

// The approximate number of flows, to refuse a mistyped one before it fills the memory.
double expected_flows(const Workload& workload, const Knobs& knobs, double fastest_gbps);

}  // namespace weir::fabric::sim
