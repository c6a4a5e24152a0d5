// What the faults of one program did: for people at its end, and as JSON. Pure.
#pragma once

#include <string>
#include <string_view>

#include "faults/call_faults.hpp"
#include "faults/packet_faults.hpp"
#include "faults/receive_faults.hpp"

namespace weir::faults {

struct Program {
  std::string_view name;
  int process = 0;
  std::uint64_t now_ns = 0;  // since its NIC was made
};

// What decided about one program's faults; all made from one plan.
struct Deciders {
  const PacketFaults& packets;
  const CallFaults& calls;
  const ReceiveFaults& receives;
};
std::string report_for_people(const Deciders& deciders, const Program& program);
// An object on one line, with its end of line.
std::string report_as_json(const Deciders& deciders, const Program& program);
// A workflow command of GitHub for each fault: a warning for those that never fired, else a notice. `file`:
// where the faults stand; empty: in no file.
std::string report_as_annotations(const Deciders& deciders, const Program& program, std::string_view file);

}  // namespace weir::faults
