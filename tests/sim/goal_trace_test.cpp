// Traces in GOAL: what they become, what is refused, and when their operations happen.
#include "fabric/sim/traffic/goal_trace.hpp"

#include <gtest/gtest.h>

#include "fabric/sim/simulation.hpp"
#include "tests/sim/four_leaves.hpp"

namespace weir::fabric::sim {
namespace {

std::optional<Scenario> read_with(const std::string& trace, Complaints& complaints) {
  const auto text = network +
                    "[transport]\ncongestion_control = \"none\"\n[[workload]]\nkind = \"goal\"\nfile = "
                    "\"t.goal\"\nstart = \"5us\"\n";
  const auto open = [&](const std::string& name) {
    return name == "t.goal" ? std::optional(trace) : std::nullopt;
  };
  return read_scenario(text, "s.toml", open, complaints);
}

// Rank 0 computes 3 us and sends; rank 1, when it has received it and has itself computed 50 us, sends back.
constexpr const char* ping_pong = R"(num_ranks 2
// a comment
rank 0 {
l1: calc 3000 cpu 0
l2: send 4096b to 1 tag 7 cpu 0 nic 0
l3: recv 1000000b from 1 tag 8
l2 requires l1
}
rank 1 {
l1: recv 4096b from 0 tag 7
l2: calc 50000
l3: send 1000000b to 0 tag 8
l3 requires l1
l3 requires l2
}
)";

TEST(GoalTrace, operations_happen_when_what_they_require_is_over) {
  Complaints complaints;
  const auto scenario = read_with(ping_pong, complaints);
  ASSERT_TRUE(scenario) << complaints.text();
  const auto prepared = prepare(*scenario, scenario->knobs);
  Simulation simulation(prepared.fabric, prepared.experiment);
  simulation.run_all();
  ASSERT_EQ(simulation.results().size(), 2u);
  const FlowResult &there = simulation.results()[0], &back = simulation.results()[1];
  EXPECT_EQ(there.started, 8 * ticks_per_us);
  EXPECT_LT(there.arrived, 55 * ticks_per_us);
  EXPECT_EQ(back.started, 55 * ticks_per_us);
  EXPECT_NE(back.arrived, no_time);
}

TEST(GoalTrace, a_receive_waits_for_its_message) {
  std::string trace = ping_pong;
  trace.replace(trace.find("calc 50000"), 10, "calc 1");
  Complaints complaints;
  const auto scenario = read_with(trace, complaints);
  ASSERT_TRUE(scenario) << complaints.text();
  const auto prepared = prepare(*scenario, scenario->knobs);
  Simulation simulation(prepared.fabric, prepared.experiment);
  simulation.run_all();
  EXPECT_EQ(simulation.results()[1].started, simulation.results()[0].arrived);
}

TEST(GoalTrace, messages_of_a_tag_match_in_order) {
  Complaints complaints;
  const std::uint32_t hosts[] = {10, 11};
  const Trace trace = read_goal_trace(
      "num_ranks 2\nrank 1 {\na: recv 1b from 0 tag 1\nb: recv 2b from 0 tag 1\nc: recv 3b from 0\n}\n"
      "rank 0 {\nsend 3b to 1\nsend 1b to 1 tag 1\nsend 2b to 1 tag 1\n}\n",
      "t.goal", hosts, complaints);
  ASSERT_TRUE(complaints.none()) << complaints.text();
  ASSERT_EQ(trace.flows.size(), 3u);
  EXPECT_EQ(trace.flows[0].from, 10u);
  EXPECT_EQ(trace.flows[0].to, 11u);
  ASSERT_EQ(trace.order.size(), 3u);
  const std::pair<std::uint32_t, std::uint32_t> expected[] = {{0, 2}, {1, 0}, {2, 1}};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(trace.order[i].before, expected[i].first);
    EXPECT_EQ(trace.order[i].after, expected[i].second | pause_bit);
  }
}

TEST(GoalTrace, refuses_with_line_and_reason) {
  const std::pair<const char*, const char*> traces[] = {
      {"rank 0 {\n", "t.goal:1:1: the file does not begin with num_ranks"},
      {"num_ranks 17\n", "t.goal:1:1: 17 ranks are more than the 16 hosts"},
      {"num_ranks 2\nl1: calc 5\n", "t.goal:2:1: 'l1:' is outside of a rank"},
      {"num_ranks 2\nrank 2 {\n", "t.goal:2:1: this begins no rank"},
      {"num_ranks 2\nrank 0 {\nrank 1 {\n", "t.goal:3:1: rank 0 has not ended"},
      {"num_ranks 2\nrank 0 {\nl1: compute 5\n", "t.goal:3:1: this is no operation"},
      {"num_ranks 2\nrank 0 {\nl1: calc long\n", "t.goal:3:1: 'long' is no time to compute"},
      {"num_ranks 2\nrank 0 {\nl1: send 5b to 0 tag 1\n", "t.goal:3:1: this sends nothing"},
      {"num_ranks 2\nrank 0 {\nl1: calc 1\nl1: calc 1\n", "t.goal:4:1: the label 'l1' is there twice"},
      {"num_ranks 2\nrank 0 {\nl1: calc 1\nl1 requires l2\n", "no operation of rank 0 has the label 'l2'"},
      {"num_ranks 2\nrank 0 {\nl1: calc 1\nl1 irequires l1\n", "irequires cannot be replayed"},
      {"num_ranks 2\nrank 0 {\nl1: calc 1\n}\n", "nothing is sent"},
      {"num_ranks 2\nrank 0 {\nsend 5b to 1 tag 3\n}\n",
       "t.goal:3:1: rank 1 receives nothing of rank 0 with tag 3"},
      {"num_ranks 2\nrank 0 {\nsend 5b to 1\nrecv 5b from 1 tag 4\n}\n", "each send needs a recv"},
      {"num_ranks 2\nrank 0 {\nsend 5b to 1\n", "rank 0 has not ended"}};
  for (const auto& [trace, says] : traces) {
    Complaints complaints;
    EXPECT_FALSE(read_with(trace, complaints)) << trace;
    EXPECT_NE(complaints.text().find(says), std::string::npos) << trace << complaints.text();
  }
}

}  // namespace
}  // namespace weir::fabric::sim
