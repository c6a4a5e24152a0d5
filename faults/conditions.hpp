// What can follow the name of a fault (`qp=1`): how each is read, and what people are shown of it. Pure.
#pragma once

#include <span>
#include <string_view>

#include "faults/fault.hpp"
#include "faults/reading.hpp"

namespace weir::faults {

// For `weir faults list`.
struct Condition {
  std::string_view name, what, example;
};
std::span<const Condition> conditions();

struct ConditionRule {
  Condition shown;
  Read (*read)(std::string_view value, Fault& fault);
};
std::span<const ConditionRule> condition_rules();

// Which packets `opcode=` means; "any" too.
Read read_opcode(std::string_view value, Fault& fault);

}  // namespace weir::faults
