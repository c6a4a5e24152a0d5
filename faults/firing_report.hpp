// What the faults of one program did: for people at its end, and as JSON. Pure.
#pragma once

#include <string>
#include <string_view>

#include "faults/call_faults.hpp"
#include "faults/packet_faults.hpp"

namespace weir::faults {

struct Program {
  std::string_view name;
  int process = 0;
  std::uint64_t now_ns = 0;  // since its NIC was made
};

// Both were made from one plan.
std::string report_for_people(const PacketFaults& packets, const CallFaults& calls, const Program& program);

}  // namespace weir::faults
