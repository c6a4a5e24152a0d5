// Flows from a CSV file: what is read, what is refused, and that a run's own list makes the same run.
#include "fabric/sim/traffic/flow_list.hpp"

#include <gtest/gtest.h>

#include "fabric/sim/scenario.hpp"
#include "fabric/sim/summary.hpp"
#include "tests/sim/four_leaves.hpp"

namespace weir::fabric::sim {
namespace {

std::optional<Scenario> read_with(const std::string& list, Complaints& complaints) {
  const auto text = network + "[[workload]]\nkind = \"flows\"\nfile = \"list.csv\"\n";
  const auto open = [&](const std::string& name) {
    return name == "list.csv" ? std::optional(list) : std::nullopt;
  };
  return read_scenario(text, "s.toml", open, complaints);
}

TEST(FlowList, columns_may_be_in_any_order) {
  Complaints complaints;
  const auto rows =
      read_flow_list("start,bytes,note,to,from\n10us,1MB,x,b,a\n, 5,never started,b,a\n\n1ms,7,,a,b\r\n",
                     "f.csv", complaints);
  ASSERT_TRUE(complaints.none()) << complaints.text();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].from, "a");
  EXPECT_EQ(rows[0].to, "b");
  EXPECT_EQ(rows[0].bytes, 1'000'000u);
  EXPECT_EQ(rows[0].start, 10 * ticks_per_us);
  EXPECT_EQ(rows[1].start, ticks_per_ms);
  EXPECT_EQ(rows[1].place.line, 5u);
}

TEST(FlowList, all_start_at_once_without_a_start) {
  Complaints complaints;
  const auto rows = read_flow_list("from,to,bytes\na,b,9\n", "f.csv", complaints);
  ASSERT_EQ(rows.size(), 1u) << complaints.text();
  EXPECT_EQ(rows[0].start, 0u);
}

TEST(FlowList, refuses_with_line_and_reason) {
  const std::pair<const char*, const char*> lists[] = {
      {"a,b,9\n", "list.csv:1:1: the first line names no columns"},
      {"from,to,bytes\n", "no flow in the file"},
      {"from,to,bytes\nleaf1-host1,leaf1-host2,much\n", "list.csv:2:1: 'much' is no size"},
      {"from,to,bytes\nleaf1-host1,leaf1-host2,0\n", "list.csv:2:1: '0' is no size"},
      {"from,to,bytes,start_us\nleaf1-host1,leaf1-host2,9,1us\n", "list.csv:2:1: '1us' is no time"},
      {"from,to,bytes,start\nleaf1-host1,leaf1-host2,9,-1us\n", "list.csv:2:1: '-1us' is no time"},
      {"from,to,bytes\nleaf1-host1,nobody,9\n", "list.csv:2:1: 'nobody' is no host"},
      {"from,to,bytes\nleaf1-host1,leaf1-host1,9\n", "list.csv:2:1: a flow from a host to itself"}};
  for (const auto& [list, says] : lists) {
    Complaints complaints;
    EXPECT_FALSE(read_with(list, complaints));
    EXPECT_NE(complaints.text().find(says), std::string::npos) << list << complaints.text();
  }
}

// The completion times of the same flows, whichever way they came.
TEST(FlowList, of_a_run_makes_the_run_again) {
  const auto outcome = [](const Scenario& scenario) {
    const auto prepared = prepare(scenario, scenario.knobs);
    Simulation simulation(prepared.fabric, prepared.experiment);
    simulation.run_all();
    return flows_csv(simulation);
  };
  const auto first = outcome(must_read(
      network +
      "[[workload]]\nkind = \"incast\"\nsenders = 6\nbytes = \"100KB\"\nrepeat = 3\nevery = \"7.5us\"\n"));
  Complaints complaints;
  const auto again = read_with(first, complaints);
  ASSERT_TRUE(again) << complaints.text();
  EXPECT_EQ(outcome(*again), first);
}

}  // namespace
}  // namespace weir::fabric::sim
