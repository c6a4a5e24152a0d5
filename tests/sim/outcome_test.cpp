// The results that a user sees: collectives, and what the default congestion control costs and leaves.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fabric/sim/collective.hpp"
#include "fabric/sim/scenario.hpp"
#include "fabric/sim/summary.hpp"
#include "tests/sim/four_leaves.hpp"

namespace weir::fabric::sim {
namespace {

const std::string incast_of_two =
    network + "[[workload]]\nkind = \"incast\"\nsenders = 2\nbytes = \"100KB\"\n";

Summary outcome(const Scenario& scenario) {
  const auto prepared = prepare(scenario, scenario.knobs);
  Simulation simulation(prepared.fabric, prepared.experiment);
  simulation.run_all();
  return summarize(simulation, false);
}

// 4 hosts, 3/4 of 4 MB each way: what NCCL calls bus bandwidth is what every link carried.
TEST(Collective, ring_and_all_to_all_have_a_time_and_a_bus_bandwidth) {
  const auto scenario = must_read(network + R"(
[simulation]
duration = "20ms"
[[workload]]
kind = "ring-allreduce"
name = "ring"
bytes = "4MB"
hosts = ["leaf1-host1", "leaf1-host2", "leaf1-host3", "leaf1-host4"]
[[workload]]
kind = "all-to-all"
name = "experts"
bytes = "1MB"
hosts = ["leaf2-host1", "leaf2-host2", "leaf2-host3", "leaf2-host4"]
[[workload]]
kind = "incast"
receiver = "leaf3-host1"
from = ["leaf4-host1", "leaf4-host2"]
bytes = "1MB"
)");
  const auto prepared = prepare(scenario, scenario.knobs);
  Simulation simulation(prepared.fabric, prepared.experiment);
  simulation.run_all();
  const auto results = collective_results(simulation);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].name, "ring");
  EXPECT_EQ(results[0].flows, 24u);
  EXPECT_EQ(results[0].finished, 24u);
  EXPECT_EQ(results[0].bytes, 4'000'000u);
  EXPECT_NEAR(results[0].bus_gbps, 4e6 * 8 * 1.5 / (results[0].completion_us * 1000), 1e-6);
  EXPECT_GT(results[0].bus_gbps, 70);  // with links of 100G
  EXPECT_LT(results[0].bus_gbps, 100);
  EXPECT_EQ(results[1].kind, "all-to-all");
  EXPECT_EQ(results[1].bytes, 4'000'000u);
  EXPECT_NEAR(results[1].bus_gbps, 4e6 * 8 * 0.75 / (results[1].completion_us * 1000), 1e-6);
  EXPECT_NE(describe(results[0]).find("ring-allreduce \"ring\", 4 hosts, 4MB: "), std::string::npos)
      << describe(results[0]);
}

TEST(Collective, one_that_does_not_finish_says_so) {
  auto scenario = must_read(network + R"(
[simulation]
duration = "10us"
[[workload]]
kind = "ring-allreduce"
bytes = "4MB"
)");
  const auto prepared = prepare(scenario, scenario.knobs);
  Simulation simulation(prepared.fabric, prepared.experiment);
  simulation.run_all();
  const auto results = collective_results(simulation);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].completion_us, 0);
  EXPECT_NE(describe(results[0]).find("not finished"), std::string::npos);
}

TEST(Collective, rates_have_units_that_people_read) {
  const std::pair<double, const char*> rows[] = {
      {0.5, "500 Mb/s"}, {16.87, "16.87 Gb/s"}, {999.4, "999.4 Gb/s"}, {225400, "225.4 Tb/s"}};
  for (const auto& [gbps, text] : rows) EXPECT_EQ(rate_text(gbps), text);
}

double milliseconds(const std::string& traffic, const char* settings) {
  const auto scenario = must_read(network + "[simulation]\nduration = \"60ms\"\n" + settings + traffic);
  const auto summary = outcome(scenario);
  EXPECT_EQ(summary.finished, summary.flows) << settings;
  return summary.last_arrival_us / 1000;
}

// Congestion control may cost something, but the default must not cost more than users would accept.
TEST(DefaultDcqcn, is_near_what_the_links_could_do) {
  constexpr const char* none = "[transport]\ncongestion_control = \"none\"\n";
  const std::string incast = "[[workload]]\nkind = \"incast\"\nsenders = 15\nbytes = \"2MB\"\n";
  const std::string permutation = "[[workload]]\nkind = \"permutation\"\nbytes = \"8MB\"\n";
  EXPECT_LT(milliseconds(incast, ""), 1.15 * milliseconds(incast, none));
  EXPECT_LT(milliseconds(permutation, ""), 2 * milliseconds(permutation, none));
}

TEST(DefaultDcqcn, scales_with_the_line) {
  const auto at = [](double scale, std::string_view to, std::string_view spine) {
    auto faster = network;
    faster.replace(faster.find("\"100G\""), 6, fmt::format("\"{}\"", to));
    faster.replace(faster.find("\"400G\""), 6, fmt::format("\"{}\"", spine));
    const auto scenario =
        must_read(faster + fmt::format("[simulation]\nduration = \"60ms\"\n[[workload]]\nkind = "
                                       "\"incast\"\nsenders = 8\nbytes = {}\n",
                                       static_cast<std::uint64_t>(2e6 * scale)));
    return outcome(scenario).last_arrival_us;
  };
  const double slow = at(0.25, "25G", "100G"), fast = at(4, "400G", "800G");
  EXPECT_LT(fast, 1.3 * slow);
}

TEST(Knobs, all_of_dcqcn_can_be_turned) {
  auto scenario = must_read(incast_of_two);
  const std::pair<const char*, const char*> turns[] = {
      {"dcqcn.preset", "paper"},          {"dcqcn.clamp_target", "no"},       {"dcqcn.reference_rate", "25G"},
      {"dcqcn.decrease_interval", "4us"}, {"dcqcn.largest_decrease", "0.25"}, {"dcqcn.initial_alpha", "0.5"},
      {"dcqcn.byte_counter", "0"}};
  for (const auto& [key, value] : turns)
    EXPECT_EQ(set_knob(scenario.knobs, *find_knob(key), value), "") << key;
  const auto p = prepare(scenario, scenario.knobs).experiment.transport.dcqcn_parameters;
  EXPECT_FALSE(p.lower_target_always);
  EXPECT_EQ(p.reference_rate, 25e9);
  EXPECT_EQ(p.decrease_interval, from_ns(4000));
  EXPECT_EQ(p.largest_decrease, 0.25);
  EXPECT_EQ(p.initial_alpha, 0.5);
  EXPECT_EQ(p.increase_bytes, 0u);
}

// The switch configuration and the simulation must agree on which priority is served first.
TEST(Scheduling, control_traffic_is_strict_only_where_the_file_says_so) {
  for (const bool strict : {false, true}) {
    const auto scenario = must_read(incast_of_two + (strict ? "[scheduling]\nstrict = [6]\n" : ""));
    for (const auto& settings : prepare(scenario, scenario.knobs).fabric.switches)
      for (unsigned i = 0; i < priorities; ++i) EXPECT_EQ(settings.priority[i].strict, strict && i == 6) << i;
  }
}

}  // namespace
}  // namespace weir::fabric::sim
