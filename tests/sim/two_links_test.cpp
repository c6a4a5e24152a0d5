// Hosts with several links: which link a flow takes, and what happens to the flow when that link fails.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fabric/sim/scenario.hpp"
#include "fabric/sim/simulation.hpp"

namespace weir::fabric::sim {
namespace {

Scenario must_read(const std::string& text) {
  Complaints complaints;
  auto scenario = read_scenario(text, "s.toml", [](const std::string&) { return std::nullopt; }, complaints);
  EXPECT_TRUE(scenario.has_value()) << complaints.text();
  return std::move(*scenario);
}

// Three hosts, each with a link to each of two switches that are not connected to each other.
std::string two_rails() {
  std::string text =
      "[[switch]]\nname = \"s1\"\nmodel = \"generic-32m\"\n"
      "[[switch]]\nname = \"s2\"\nmodel = \"generic-32m\"\n";
  for (int host = 1; host <= 3; ++host) {
    text += fmt::format("[[host]]\nname = \"h{}\"\n", host);
    for (int rail = 1; rail <= 2; ++rail)
      text += fmt::format("[[link]]\nbetween = [\"h{}\", \"s{}\"]\nspeed = \"100G\"\ncable = \"3m\"\n", host,
                          rail);
  }
  return text + R"([transport]
timeout = "200us"
[[workload]]
kind = "all-to-all"
hosts = ["h1", "h2"]
bytes = "2MB"
repeat = 16
every = "0s"
)";
}

TEST(HostWithTwoLinks, SendsAndReceivesOverBoth) {
  const auto scenario = must_read(two_rails());
  const auto prepared = prepare(scenario, scenario.knobs);
  Simulation simulation(prepared.fabric, prepared.experiment);
  simulation.run_all();
  EXPECT_EQ(simulation.totals().finished, 32u);
  for (std::uint32_t p = 0; p < prepared.fabric.ports.size(); ++p) {
    const auto& name = prepared.fabric.nodes[prepared.fabric.ports[p].node].name;
    if (name != "h1" && name != "h2") continue;
    EXPECT_GT(simulation.queue(p, 3).sent_bytes, 4u * 2'000'000) << name;  // of sixteen flows
    EXPECT_GT(simulation.queue(p, 6).sent_packets, 0u) << name;            // answers use the same link
  }
  // One link would need 2.56 ms or more for 16 times 2 MB at 100 Gb/s.
  EXPECT_LT(to_us(simulation.now()), 2000);
}

TEST(HostWithTwoLinks, GoesOnOverTheOtherWhereOneFails) {
  for (const auto* failed : {"[\"h1\", \"s1\"]", "[\"s2\", \"h2\"]"}) {
    const auto scenario =
        must_read(two_rails() + "[[link_failure]]\nat = \"100us\"\nconvergence = \"50us\"\n" +
                  "between = " + failed + "\n");
    const auto prepared = prepare(scenario, scenario.knobs);
    Simulation simulation(prepared.fabric, prepared.experiment);
    simulation.run_all();
    EXPECT_EQ(simulation.totals().finished, 32u) << failed;
    EXPECT_GT(simulation.totals().link_drops + simulation.totals().egress_drops, 0u) << failed;
  }
}

}  // namespace
}  // namespace weir::fabric::sim
