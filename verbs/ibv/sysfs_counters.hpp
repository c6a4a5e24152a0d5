// The counters below /sys/class/infiniband/NAME/ports/1, and the NIC counters that each adds up.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "verbs/monitor/statistics.hpp"

namespace weir::verbs {

using CounterTerm = std::uint64_t CountersSeen::*;
using CounterTerms = std::array<CounterTerm, 7>;  // unused places are nullptr

struct SysfsCounter {
  std::string_view path;   // below the port's directory: "counters/..." as the InfiniBand core names them,
                           // "hw_counters/..." as drivers of RoCE devices do
  CounterTerms plus = {};  // empty: never happens here
  CounterTerm minus = nullptr;
  std::uint64_t unit = 1;  // units of the sum for one count

  std::uint64_t of(const CountersSeen& port) const;
};

std::span<const SysfsCounter> sysfs_counters();
const SysfsCounter* find_sysfs_counter(std::string_view path);

}  // namespace weir::verbs
