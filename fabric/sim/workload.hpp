// What the hosts send: patterns that become lists of flows. Pure: the same settings and seed give the same
// flows.
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
  std::optional<std::uint8_t> priority = {};  // absent: that of the transport
  std::uint64_t bytes = 1'000'000;            // of each flow; of ring_allreduce: of the whole vector
  Ticks start = 0;
  std::vector<std::uint32_t> hosts;         // who takes part, in order; of incast: the senders
  std::uint32_t receiver = 0;               // incast
  std::uint32_t repeat = 1;                 // incast, permutation, all_to_all
  Ticks every = ticks_per_ms;               // between repetitions
  const SizeDistribution* sizes = nullptr;  // poisson
  double load = 0.5;                        // poisson: of each sender's link
  Ticks until = 0;                          // poisson: no flow starts later
  std::vector<ListedFlow> listed;           // flows
};

// Appends the flows of `workload`. `frame_overhead` is what a packet of `mtu` costs beside its payload.
void append_flows(std::vector<FlowSpec>& flows, const Workload& workload, std::uint16_t index,
                  const Fabric& fabric, const Transport& transport, std::uint64_t seed);

// What the users of `workload` see as one operation; nothing where it is none, or is repeated.
std::optional<Collective> collective_of(const Workload& workload, std::uint16_t index);

// About how many flows it will be: to refuse a mistyped one before it fills the memory.
double expected_flows(const Workload& workload, const Knobs& knobs, double fastest_gbps);

}  // namespace weir::fabric::sim
