// The traffic of the hosts: patterns that become lists of flows. Pure: the same settings and
// seed give the same flows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fabric/sim/knobs.hpp"
#include "fabric/sim/settings.hpp"
#include "fabric/sim/traffic/all_reduce.hpp"

namespace weir::fabric::sim {

struct SizeDistribution;

enum class Pattern : std::uint8_t {
  incast,
  permutation,
  all_to_all,
  flows,
  poisson,
  poisson_incast,
  all_reduce,
  goal
};

struct ListedFlow {
  std::uint32_t from = 0, to = 0;
  std::uint64_t bytes = 0;
  Ticks start = 0;
};

// A trace (goal_trace.hpp): flows, pauses, and what precedes what, by their indices here.
struct Trace {
  std::vector<ListedFlow> flows;
  std::vector<Ticks> pauses;
  std::vector<Precedence> order;  // a pause is its index with pause_bit
};

struct Workload {
  std::string name;
  Pattern pattern = Pattern::incast;
  std::optional<std::uint8_t> priority = {};  // absent: the transport's
  std::uint64_t bytes = 1'000'000;            // per flow; for all_reduce: the whole vector
  Ticks start = 0;
  std::vector<std::uint32_t> hosts;         // participants in order; for incast: the senders
  std::uint32_t receiver = 0;               // incast
  std::uint32_t repeat = 1;                 // incast, permutation, all_to_all
  Ticks every = ticks_per_ms;               // between repetitions
  const SizeDistribution* sizes = nullptr;  // poisson
  double load = 0.5;                        // poisson: of each sender's link; poisson_incast: of all links
  Ticks until = 0;                          // poisson, poisson_incast: flows start before this
  std::uint32_t senders = 0;                // poisson_incast: to one receiver at once
  AllReduce all_reduce;                     // all_reduce
  std::vector<ListedFlow> listed;           // flows
  Trace trace;                              // goal
};

// Appends the flows of `workload`, and their order. Packets' headers and gaps, from the run's transport,
// count towards its load.
void append_flows(Experiment& run, const Workload& workload, std::uint16_t index, const Fabric& fabric);

// The operation that users see in `workload`; nullopt: it is not a collective, or is repeated.
std::optional<Collective> collective_of(const Workload& workload, std::uint16_t index);

// The approximate number of flows, to refuse a mistyped one before it fills the memory.
double expected_flows(const Workload& workload, const Knobs& knobs, double fastest_gbps);

}  // namespace weir::fabric::sim
