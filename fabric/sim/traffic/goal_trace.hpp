// A trace in GOAL, the language of LogGOPSim and ATLAHS (Hoefler, Siebert, Lumsdaine 2009): what each rank
// sends, receives and computes, and what requires what.
//
//   num_ranks 2
//   rank 0 {
//   l1: calc 1000
//   l2: send 1048576b to 1 tag 7
//   l2 requires l1
//   }
//   rank 1 {
//   l1: recv 1048576b from 0 tag 7
//   }
//
// A send becomes a flow, and is over when all of it has arrived (rendezvous); a receive is over when its
// message has arrived and what it requires is over; calc is in nanoseconds, and computations of a rank run
// side by side. Sends and receives of two ranks and a tag match in their order. "cpu" and "nic" are read and
// ignored, "irequires" is refused. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fabric/sim/traffic/workload.hpp"
#include "fabric/topology/complaint.hpp"

namespace weir::fabric::sim {

// `hosts`: of the ranks, in order. On a mistake the trace is empty, and `complaints` has it.
Trace read_goal_trace(std::string_view text, const std::string& file, std::span<const std::uint32_t> hosts,
                      Complaints& complaints);

}  // namespace weir::fabric::sim
