// The small network that scenario tests share, and how they read a scenario's text.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "fabric/sim/scenario.hpp"

namespace weir::fabric::sim {

inline const std::string network = R"(
name = "four leaves"
[leaf_spine]
spines = 2
leaves = 4
hosts_per_leaf = 4
host_speed = "100G"
host_cable = "3m"
spine_speed = "400G"
spine_cable = "40m"
leaf_model = "generic-32m"
spine_model = "generic-32m"
)";

inline std::optional<Scenario> read(const std::string& text, Complaints& complaints) {
  return read_scenario(text, "s.toml", [](const std::string&) { return std::nullopt; }, complaints);
}

inline Scenario must_read(const std::string& text) {
  Complaints complaints;
  auto scenario = read(text, complaints);
  EXPECT_TRUE(scenario.has_value()) << complaints.text();
  return std::move(*scenario);
}

}  // namespace weir::fabric::sim
