// The kinds of faults (`drop`): what each does, what is written behind its name, and which conditions it has.
// Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "faults/fault.hpp"
#include "faults/reading.hpp"

namespace weir::faults {

// For `weir faults list`.
struct KindOfFault {
  std::string_view name, what, example;
};
std::span<const KindOfFault> kinds_of_faults();

enum class Amount : std::uint8_t { none, optional, required };

struct KindRule {
  KindOfFault shown;
  Act act;
  Amount amount;
  Read (*read)(std::string_view word, Fault& fault) = nullptr;  // the amount
  std::uint64_t usual = 0;
  std::string_view required = {};  // a condition
};

std::span<const KindRule> kind_rules();

// Which conditions make sense for a fault.
bool is_allowed(Act act, std::string_view condition);

}  // namespace weir::faults
