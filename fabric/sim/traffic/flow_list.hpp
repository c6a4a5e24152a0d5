// A list of flows as CSV, to replay what other tools recorded or simulated. The heading names the columns, in
// any order: from (or source), to (or destination), bytes, and start, with a unit ("10us"), or start_us;
// others are ignored. So the flows.csv of an earlier run is such a list. Without a column for the start all
// flows start at 0; a flow whose cell there is empty never started, and is left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fabric/sim/ticks.hpp"
#include "fabric/topology/complaint.hpp"

namespace weir::fabric::sim {

struct FlowRow {
  fabric::Place place;
  std::string from, to;  // names of hosts
  std::uint64_t bytes = 0;
  Ticks start = 0;
};

std::vector<FlowRow> read_flow_list(std::string_view text, const std::string& file, Complaints& complaints);

}  // namespace weir::fabric::sim
