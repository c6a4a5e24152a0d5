// The language of faults: one a line, what happens and then to which packets.
//
//     # what follows a # is a remark
//     seed 42
//     drop qp=1 psn=5
//     delay 80us qp=2 opcode=ack rate=10%
//
// The same for a file and for an option (`weir run --fault 'drop qp=1 psn=5'`), where ';' also ends a line.
// Pure.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "faults/fault.hpp"

namespace weir::faults {

// A file has no use for more; each packet is compared with each fault.
inline constexpr std::size_t max_faults = 1000;

struct Mistake {
  std::size_t line = 0;  // from 1
  std::string word;      // the word at fault
  std::string what;      // the sentence about it, with a guess of what was meant
};
// "line 3: ..."
std::string text_of(const Mistake& mistake);

std::expected<Plan, Mistake> read_plan(std::string_view text);

}  // namespace weir::faults
