// What the faults of one program did: for people at its end, and as JSON. Pure.
#pragma once

#include <string>
#include <string_view>

#include "faults/packet_faults.hpp"

namespace weir::faults {

struct Program {
  std::string_view name;
  int process = 0;
};

std::string report_for_people(const PacketFaults& faults, const Program& program);

}  // namespace weir::faults
