// The algorithms of an all-reduce against arithmetic: what each host sends, and how long that takes where
// nothing else is in the way. All hosts are under one switch, so no two flows of different hosts share a link
// but a receiver's.
#include "fabric/sim/traffic/all_reduce.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "fabric/sim/collective.hpp"
#include "fabric/sim/random.hpp"
#include "tests/sim/four_leaves.hpp"

namespace weir::fabric::sim {
namespace {

// `hosts` at 100 Gb/s under one switch.
std::string one_switch(int hosts, const std::string& workload) {
  std::string text = "[[switch]]\nname = \"s\"\nmodel = \"generic-32m\"\n";
  for (int i = 0; i < hosts; ++i)
    text += fmt::format(
        "[[host]]\nname = \"h{0}\"\n[[link]]\nbetween = [\"h{0}\", \"s\"]\nspeed = \"100G\"\ncable = "
        "\"3m\"\n",
        i);
  return text +
         "[simulation]\nduration = \"100ms\"\n[transport]\ncongestion_control = \"none\"\n[[workload]]\n" +
         workload;
}

struct Outcome {
  std::vector<FlowSpec> flows;
  std::vector<FlowResult> results;
  CollectiveResult collective;
};
Outcome run(const std::string& text) {
  const Scenario scenario = must_read(text);
  const Prepared prepared = prepare(scenario, scenario.knobs);
  Simulation simulation(prepared.fabric, prepared.experiment);
  simulation.run_all();
  EXPECT_EQ(simulation.totals().finished, prepared.experiment.flows.size());
  const auto collectives = collective_results(simulation);
  return {prepared.experiment.flows,
          {simulation.results().begin(), simulation.results().end()},
          collectives.empty() ? CollectiveResult() : collectives.front()};
}
std::string all_reduce_of(const std::string& algorithm, const std::string& bytes) {
  return fmt::format("kind = \"all-reduce\"\nalgorithm = \"{}\"\nbytes = \"{}\"\n", algorithm, bytes);
}

// Of payload in a link of 100 Gb/s: MTU 1024, 62 bytes of headers, 20 between frames.
constexpr double payload_gbps = 100.0 * 1024 / (1024 + 82);

TEST(AllReduce, each_host_sends_two_vectors_less_its_share) {
  for (const auto& [algorithm, share] :
       {std::pair("ring", 2 * 7 / 8.0), {"direct", 2 * 7 / 8.0}, {"halving-doubling", 2 * 7 / 8.0}}) {
    SCOPED_TRACE(algorithm);
    const Outcome outcome = run(one_switch(8, all_reduce_of(algorithm, "8MB")));
    std::map<std::uint32_t, double> sent, received;
    for (const FlowSpec& flow : outcome.flows) {
      sent[flow.source] += static_cast<double>(flow.bytes);
      received[flow.destination] += static_cast<double>(flow.bytes);
    }
    EXPECT_EQ(sent.size(), 8u);
    for (const auto& [host, bytes] : sent) {
      EXPECT_DOUBLE_EQ(bytes, 8e6 * share);
      EXPECT_DOUBLE_EQ(received[host], bytes);
    }
  }
}

// All are bound by the links, so the bus bandwidth is their rate, less what each step waits for the last.
TEST(AllReduce, bus_bandwidth_is_the_links_rate) {
  for (const auto& [algorithm, least] :
       {std::pair("ring", 0.93), {"direct", 0.95}, {"halving-doubling", 0.97}, {"tree", 0.7}}) {
    const Outcome outcome = run(one_switch(8, all_reduce_of(algorithm, "16MB")));
    EXPECT_LE(outcome.collective.bus_gbps, payload_gbps) << algorithm;
    EXPECT_GE(outcome.collective.bus_gbps, payload_gbps * least) << algorithm;
  }
}

// A host of a tree receives the vector twice: as an inner place a half from each of two children and one
// from its parent, as a leaf of the other tree one more half.
TEST(AllReduce, a_tree_in_many_chunks_approaches_two_vectors) {
  const double two_vectors_us = 2 * 32e6 * 8 / (payload_gbps * 1000);
  const Outcome few = run(one_switch(16, all_reduce_of("tree", "32MB") + "chunks = 4\n"));
  const Outcome many = run(one_switch(16, all_reduce_of("tree", "32MB") + "chunks = 64\n"));
  EXPECT_GT(many.collective.completion_us, two_vectors_us * 0.95);
  EXPECT_LT(many.collective.completion_us, two_vectors_us * 1.25);
  EXPECT_LT(many.collective.completion_us, few.collective.completion_us);
}

// Where messages are small their number of steps in a row counts: 2 (n - 1), 2 log2 n, 2.
TEST(AllReduce, small_vectors_take_as_long_as_their_steps) {
  std::map<std::string, double> us;
  for (const char* algorithm : {"ring", "halving-doubling", "direct"})
    us[algorithm] = run(one_switch(16, all_reduce_of(algorithm, "1.6KB"))).collective.completion_us;
  EXPECT_NEAR(us["ring"] / us["halving-doubling"], 30.0 / 8, 0.3);
  EXPECT_LT(us["direct"], us["halving-doubling"] / 2);
}

// Steps of halving and doubling share no link, so each takes as long as alone.
TEST(AllReduce, halving_and_doubling_takes_the_sum_of_its_steps) {
  const Outcome outcome = run(one_switch(8, all_reduce_of("halving-doubling", "8MB")));
  double ideal_us = 0;
  for (std::size_t step = 0; step < 6; ++step) ideal_us += to_us(outcome.results[step * 8].ideal);
  EXPECT_NEAR(outcome.collective.completion_us, ideal_us, ideal_us * 0.01);
}

TEST(AllReduce, every_number_of_hosts_makes_two_trees) {
  for (int hosts = 2; hosts <= 17; ++hosts) {
    SCOPED_TRACE(hosts);
    const Outcome outcome = run(one_switch(hosts, all_reduce_of("tree", "1MB") + "chunks = 2\n"));
    EXPECT_EQ(outcome.flows.size(), 4u * static_cast<unsigned>(hosts - 1) * 2);
    std::map<std::uint32_t, int> parents;
    for (const FlowSpec& flow : outcome.flows) ++parents[flow.source];
    EXPECT_EQ(parents.size(), static_cast<std::size_t>(hosts));
  }
}

TEST(AllReduce, halving_refuses_other_numbers_of_hosts) {
  Complaints complaints;
  EXPECT_FALSE(read(one_switch(6, all_reduce_of("halving-doubling", "1MB")), complaints));
  EXPECT_NE(complaints.text().find("6 hosts are no power of two"), std::string::npos) << complaints.text();
}

// Load 2 %, as in HPCC's paper: incasts of random receivers bring that share of what all links carry.
TEST(PoissonIncast, brings_its_load_to_random_receivers) {
  const Scenario scenario = must_read(one_switch(
      16, "kind = \"poisson-incast\"\nsenders = 10\nbytes = \"50KB\"\nload = 0.2\nuntil = \"50ms\"\n"));
  const auto& flows = prepare(scenario, scenario.knobs).experiment.flows;
  double bytes = 0;
  std::map<std::uint32_t, int> receivers;
  std::map<std::pair<Ticks, std::uint32_t>, std::map<std::uint32_t, int>> senders;
  for (const FlowSpec& flow : flows) {
    bytes += static_cast<double>(flow.bytes);
    ++receivers[flow.destination];
    ++senders[{flow.start, flow.destination}][flow.source];
    EXPECT_NE(flow.source, flow.destination);
  }
  const double offered = 0.2 * 16 * payload_gbps * 1e9 / 8 * 50e-3;
  EXPECT_NEAR(bytes, offered, offered * 0.1);
  EXPECT_EQ(receivers.size(), 16u);
  for (const auto& [incast, from] : senders) EXPECT_EQ(from.size(), 10u);
}

}  // namespace
}  // namespace weir::fabric::sim
