// Scenario files: their results, what is refused, and that equal runs give equal bytes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <regex>

#include "fabric/sim/over_time.hpp"
#include "fabric/sim/summary.hpp"
#include "fabric/sim/sweep.hpp"
#include "fabric/sim/traffic/size_distribution.hpp"
#include "tests/sim/four_leaves.hpp"

namespace weir::fabric::sim {
namespace {

struct Results {
  Summary summary;
  std::string everything;
  std::vector<Incident> incidents;
};
Results run(const Scenario& scenario, const Knobs& knobs) {
  const auto prepared = prepare(scenario, knobs);
  Simulation simulation(prepared.fabric, prepared.experiment);
  simulation.run_all();
  Results results;
  results.summary = summarize(simulation, false);
  results.everything = summary_json(simulation, results.summary, {}) + flows_csv(simulation) +
                       ports_csv(simulation) + totals_csv(simulation) + switches_csv(simulation) +
                       queues_csv(simulation) + html_report(simulation, results.summary, {});
  results.incidents.assign(simulation.incidents().begin(), simulation.incidents().end());
  return results;
}

const std::string mixed = network + R"(
[simulation]
duration = "3ms"
[[workload]]
kind = "incast"
senders = 8
bytes = "300KB"
[[workload]]
kind = "poisson"
sizes = "hadoop"
load = 0.3
until = "500us"
)";

TEST(Scenario, SameSeedSameBytes) {
  const auto once = must_read(mixed), again = must_read(mixed);
  EXPECT_EQ(run(once, once.knobs).everything, run(again, again.knobs).everything);
}

TEST(Scenario, AnotherSeedIsAnotherRun) {
  const auto scenario = must_read(mixed);
  Knobs other = scenario.knobs;
  other.seed = 2;
  EXPECT_NE(run(scenario, scenario.knobs).everything, run(scenario, other).everything);
}

// For settings that the file leaves open: what it names cannot be changed from outside.
TEST(Scenario, TurnedKnobsReachWhatTheFileLeavesToThem) {
  const auto scenario = must_read(network + R"(
[[workload]]
kind = "permutation"
[[workload]]
kind = "permutation"
priority = 4
[[storm]]
host = "leaf1-host1"
[[storm]]
host = "leaf1-host2"
priority = 4
until = "1ms"
)");
  Knobs turned = scenario.knobs;
  ASSERT_EQ(set_knob(turned, *find_knob("transport.priority"), "5"), "");
  ASSERT_EQ(set_knob(turned, *find_knob("duration"), "40ms"), "");
  const auto experiment = prepare(scenario, turned).experiment;
  for (const auto& flow : experiment.flows) EXPECT_EQ(flow.priority, flow.workload == 0 ? 5 : 4);
  ASSERT_EQ(experiment.storms.size(), 2u);
  EXPECT_EQ(experiment.storms[0].priority, 5);
  EXPECT_EQ(experiment.storms[0].end, 40 * ticks_per_ms);
  EXPECT_EQ(experiment.storms[1].priority, 4);
  EXPECT_EQ(experiment.storms[1].end, ticks_per_ms);
}

TEST(Scenario, WorkloadsThatKnobsMakeMoreThanARunHoldsAreRefused) {
  const auto scenario = must_read(network +
                                  "[[workload]]\nkind = \"poisson\"\nload = 0.5\n[[workload]]\nkind = "
                                  "\"incast\"\nbytes = \"1000GB\"\n");
  struct Row {
    const char* knob;
    const char* value;
    const char* says;
  };
  const Row rows[] = {{"load", "1", ""},         {"load", "100", ""},
                      {"duration", "100ms", ""}, {"duration", "170s", "more than 20 million"},
                      {"mtu", "234", ""},        {"mtu", "232", "packets of 232 than can be counted"}};
  for (const auto& row : rows) {
    Knobs turned = scenario.knobs;
    ASSERT_EQ(set_knob(turned, *find_knob(row.knob), row.value), "");
    const auto text = beyond_a_run(scenario, turned);
    EXPECT_EQ(text.empty(), std::string_view(row.says).empty())
        << row.knob << ' ' << row.value << ": " << text;
    EXPECT_NE(text.find(row.says), std::string::npos) << text;
  }
}

TEST(Sweep, IsTheSameHoweverItIsSplit) {
  const auto scenario = must_read(mixed);
  const std::vector<SweepAxis> axes = {{find_knob("alpha"), {"0.0078125", "1"}},
                                       {find_knob("ecn.kmin"), {"10KB", "100KB"}}};
  const std::atomic<bool> stop{false};
  std::size_t last = 0;
  const auto one = sweep(scenario, scenario.knobs, axes, 1, stop, [&](std::size_t done) { last = done; });
  const auto many = sweep(scenario, scenario.knobs, axes, 4, stop, {});
  EXPECT_EQ(last, 4u);
  EXPECT_EQ(sweep_csv(axes, one), sweep_csv(axes, many));
  EXPECT_NE(one[0].summary.totals.pfc_frames, one[2].summary.totals.pfc_frames);  // alpha has an effect
}

TEST(Sweep, PicturesNameTheValuesAsTheyWereGiven) {
  const auto scenario = must_read(mixed);
  const std::vector<SweepAxis> axes = {{find_knob("ecn.kmin"), {"10KB", "100KB", "5000"}}};
  const std::atomic<bool> stop{false};
  const auto page = sweep_html(scenario, axes, sweep(scenario, scenario.knobs, axes, 1, stop, {}));
  std::size_t at = 0;
  for (const char* value : {">10KB<", ">100KB<", ">5000<", ">kmin (in equal steps)<"}) {
    at = page.find(value, at);
    ASSERT_NE(at, std::string::npos) << value;
  }
}

TEST(Sweep, StoppedBeforeItBeganHasNoRows) {
  const auto scenario = must_read(mixed);
  const std::vector<SweepAxis> axes = {{find_knob("alpha"), {"0.5", "1"}}};
  const std::atomic<bool> stop{true};
  for (const auto& row : sweep(scenario, scenario.knobs, axes, 2, stop, {})) EXPECT_FALSE(row.done);
}

TEST(Scenario, InterruptedRunIsMarkedPartial) {
  const auto scenario = must_read(mixed);
  const auto prepared = prepare(scenario, scenario.knobs);
  Simulation simulation(prepared.fabric, prepared.experiment);
  ASSERT_TRUE(simulation.run_some(5000));
  const auto summary = summarize(simulation, true);
  EXPECT_NE(summary_json(simulation, summary, {}).find("\"partial\": true"), std::string::npos);
  EXPECT_NE(html_report(simulation, summary, {}).find("Partial:"), std::string::npos);
}

// Five switches in a ring, each host sending to the one two hops on: a standstill after half a millisecond.
const std::string standing_still = R"(
name = "ring"
[routing]
rule = "shortest"
[simulation]
duration = "40ms"
[transport]
congestion_control = "none"
[buffer]
alpha = 0.125
shared = "4MB"
)";

std::string ring_of_five() {
  std::string text = standing_still;
  for (int i = 1; i <= 5; ++i)
    text +=
        fmt::format("[[switch]]\nname = \"s{0}\"\nmodel = \"generic-32m\"\n[[host]]\nname = \"h{0}\"\n", i);
  for (int i = 1; i <= 5; ++i)
    text += fmt::format(
        "[[link]]\nbetween = [\"s{0}\", \"h{0}\"]\nspeed = \"100G\"\ncable = \"5m\"\n"
        "[[link]]\nbetween = [\"s{0}\", \"s{1}\"]\nspeed = \"100G\"\ncable = \"100m\"\n",
        i, i % 5 + 1);
  text += "[[workload]]\nkind = \"flows\"\n";
  for (int i = 1; i <= 5; ++i)
    text += fmt::format("[[workload.flow]]\nfrom = \"h{}\"\nto = \"h{}\"\nbytes = \"20MB\"\n", i,
                        (i + 1) % 5 + 1);
  return text;
}

TEST(Report, TimeEndsSoonAfterTheLastThingThatHappened) {
  const auto scenario = must_read(ring_of_five());
  const auto prepared = prepare(scenario, scenario.knobs);
  Simulation simulation(prepared.fabric, prepared.experiment);
  simulation.run_all();
  ASSERT_EQ(simulation.incidents().size(), 1u);
  EXPECT_EQ(to_us(simulation.now()), 40'000);
  EXPECT_GT(end_of_interest(simulation), simulation.incidents()[0].time);
  EXPECT_LT(to_us(end_of_interest(simulation)), 1.3 * to_us(simulation.incidents()[0].time));
  // A standstill is two samples, not two hundred; before it there are enough to show how it came.
  const auto& moments = simulation.series().totals;
  EXPECT_LE(std::ranges::count_if(moments, [](const auto& row) { return to_us(row.time) > 3000; }), 2);
  EXPECT_GE(std::ranges::count_if(moments, [](const auto& row) { return to_us(row.time) < 200; }), 8);
}

TEST(Report, MapShowsWhoWasStopped) {
  const auto scenario = must_read(ring_of_five());
  const auto prepared = prepare(scenario, scenario.knobs);
  Simulation simulation(prepared.fabric, prepared.experiment);
  simulation.run_all();
  const auto map = worst_places(simulation, *scenario.network);
  EXPECT_NE(map.find("s1:Ethernet4 to s2: longest queue"), std::string::npos);
  EXPECT_NE(map.find("h3: stopped 9"), std::string::npos);
}

TEST(Scenario, PlannedNetworkLosesNothingAndTooLittleHeadroomDoes) {
  const auto scenario = must_read(network +
                                  "[[workload]]\nkind = \"incast\"\nsenders = 15\nbytes = \"3MB\"\n"
                                  "[transport]\ncongestion_control = \"none\"\n");
  EXPECT_EQ(run(scenario, scenario.knobs).summary.totals.lossless_drops, 0u);
  Knobs starved = scenario.knobs;
  ASSERT_EQ(set_knob(starved, *find_knob("buffer.headroom"), "4KB"), "");
  ASSERT_EQ(set_knob(starved, *find_knob("alpha"), "0.0625"), "");
  EXPECT_GT(run(scenario, starved).summary.totals.lossless_drops, 0u);
}

TEST(Scenario, WatchdogEndsWhatAStormHoldsUp) {
  const auto scenario = must_read(network + R"(
[simulation]
duration = "20ms"
[transport]
timeout = "1ms"
[watchdog]
poll = "200us"
detection = "1ms"
restoration = "1ms"
[[storm]]
host = "leaf1-host1"
from = "10us"
until = "6ms"
[[workload]]
kind = "incast"
receiver = "leaf1-host1"
senders = 8
bytes = "1MB"
)");
  const auto results = run(scenario, scenario.knobs);
  ASSERT_GE(results.incidents.size(), 2u);
  EXPECT_EQ(results.incidents.front().kind, Incident::Kind::storm_detected);
  EXPECT_EQ(results.incidents.back().kind, Incident::Kind::storm_over);
  EXPECT_EQ(results.summary.finished, 8u);  // by retransmitting what was dropped
  EXPECT_GT(results.summary.totals.egress_drops, 0u);
}

TEST(Scenario, StrictPriorityGoesBeforeTheOthersThatShareByWeight) {
  const std::string flows = network + R"(
[transport]
congestion_control = "none"
[[workload]]
kind = "incast"
receiver = "leaf1-host1"
from = ["leaf2-host1"]
priority = 3
bytes = "5MB"
[[workload]]
kind = "incast"
receiver = "leaf1-host1"
from = ["leaf3-host1"]
priority = 5
bytes = "5MB"
)";
  const auto times = [](const Scenario& scenario) {
    const auto prepared = prepare(scenario, scenario.knobs);
    Simulation simulation(prepared.fabric, prepared.experiment);
    simulation.run_all();
    std::vector<double> slowdowns;
    for (const auto& flow : simulation.results())
      slowdowns.push_back(static_cast<double>(flow.arrived - flow.started) / static_cast<double>(flow.ideal));
    return slowdowns;
  };
  const auto shared = times(must_read(flows));
  EXPECT_GT(shared[0], 1.9);  // 15 to 14: the lossless flow starts a little earlier
  EXPECT_LT(shared[0], shared[1]);
  const auto strict = times(must_read(flows + "[scheduling]\nstrict = [5]\n"));
  EXPECT_LT(strict[1], 1.01);
  EXPECT_GT(strict[0], 1.95);
}

TEST(Scenario, LinkFailureLosesWhatWasOnItAndTheRestGoesRound) {
  const auto scenario = must_read(network + R"(
[simulation]
duration = "50ms"
[transport]
timeout = "500us"
[[link_failure]]
between = ["leaf1", "spine1"]
at = "20us"
convergence = "100us"
[[workload]]
kind = "permutation"
bytes = "2MB"
)");
  const auto results = run(scenario, scenario.knobs);
  EXPECT_EQ(results.summary.finished, 16u);
  EXPECT_GT(results.summary.totals.link_drops + results.summary.totals.egress_drops, 0u);
  EXPECT_EQ(results.incidents.front().kind, Incident::Kind::link_down);
}

TEST(Scenario, RingAllreduceStartsAStepWhenTheOneBeforeArrived) {
  const auto scenario = must_read(network + "[[workload]]\nkind = \"ring-allreduce\"\nbytes = \"16MB\"\n");
  const auto prepared = prepare(scenario, scenario.knobs);
  ASSERT_EQ(prepared.experiment.flows.size(), 16u * 30);
  Simulation simulation(prepared.fabric, prepared.experiment);
  simulation.run_all();
  EXPECT_EQ(simulation.totals().finished, 16u * 30);
  EXPECT_EQ(prepared.experiment.order.size(), 16u * 29);
  for (const auto& [before, after] : prepared.experiment.order) {
    EXPECT_EQ(simulation.results()[after].started, simulation.results()[before].arrived);
    EXPECT_EQ(prepared.experiment.flows[after].source, prepared.experiment.flows[before].destination);
  }
}

TEST(Workload, PermutationLeavesNobodyInPlace) {
  const auto scenario = must_read(network + "[[workload]]\nkind = \"permutation\"\nrepeat = 5\n");
  const auto prepared = prepare(scenario, scenario.knobs);
  std::vector<int> received(16, 0);
  for (const auto& flow : prepared.experiment.flows) {
    EXPECT_NE(flow.source, flow.destination);
    ++received[flow.destination];
  }
  EXPECT_EQ(received, std::vector<int>(16, 5));
}

TEST(SizeDistribution, SamplesHaveItsMean) {
  for (const auto& sizes : size_distributions()) {
    Random random(7);
    double sum = 0;
    constexpr int samples = 200'000;
    for (int i = 0; i < samples; ++i) sum += static_cast<double>(sizes.sample(random));
    EXPECT_NEAR(sum / samples / sizes.mean(), 1, 0.03) << sizes.name;
  }
}

TEST(Flow, NeedsLessThanAKilobyte) {
  // A flow that waits or is over takes little memory, and an active one not much more.
  EXPECT_LT(sizeof(FlowSpec) + sizeof(FlowResult) + sizeof(std::uint32_t), 128u);
  EXPECT_LT(sizeof(Flow) + 2 * sizeof(Path), 256u);
}

struct Refusal {
  const char* text;
  const char* says;
};

TEST(Scenario, RefusesWithPlaceAndReason) {
  const Refusal refusals[] = {
      {"", "workload"},
      {"[[workload]]\nkind = \"incast\"\nsnders = 3\n", "snders"},
      {"[[workload]]\nkind = \"incst\"\n", "incst"},
      {"[[workload]]\nkind = \"incast\"\nreceiver = \"nobody\"\n", "'nobody' is no host"},
      {"[[workload]]\nkind = \"incast\"\nbytes = \"-1\"\n", "bytes"},
      {"[[workload]]\nkind = \"flows\"\n[[workload.flow]]\nfrom = \"leaf1-host1\"\nto = "
       "\"leaf1-host1\"\nbytes = 1\n",
       "itself"},
      {"[[workload]]\nkind = \"poisson\"\nload = 1.5\n[simulation]\nduration = \"100s\"\n", "20 million"},
      {"[[workload]]\nkind = \"permutation\"\n[buffer]\nalpha = -1\n", "alpha"},
      {"[[workload]]\nkind = \"permutation\"\n[simulation]\nduration = \"1h\"\n", "duration"},
      {"[[workload]]\nkind = \"permutation\"\n[[link_failure]]\nbetween = [\"leaf1\", \"leaf2\"]\n",
       "no link"},
      {"[[workload]]\nkind = \"permutation\"\n[buffer]\nheadroom = \"3MB\"\n",
       "s.toml:3:1: the buffer of leaf1 (33554352 bytes) is smaller than its headroom"},
      {"[[workload]]\nkind = \"permutation\"\n[nonsense]\n", "nonsense"},
      {"[[workload]]\nkind = \"permutation\"\n[[storm]]\nhost = \"leaf1-host1\"\nfrom = \"2ms\"\nuntil = "
       "\"1ms\"\n",
       "s.toml:17:8: the storm is over before it begins"},
      {"[[workload]]\nkind = \"permutation\"\n[[storm]]\nhost = \"leaf1-host1\"\npriority = 5\n",
       "s.toml:17:12: priority 5 is not lossless"},
  };
  for (const auto& refusal : refusals) {
    Complaints complaints;
    EXPECT_FALSE(read(network + refusal.text, complaints)) << refusal.text;
    EXPECT_NE(complaints.text().find(refusal.says), std::string::npos) << complaints.text();
    EXPECT_EQ(complaints.text().find("s.toml:"), 0u) << complaints.text();
  }
}

TEST(Scenario, MorePortsThanEventKeysHoldIsRefused) {
  Complaints complaints;
  const auto wide = std::regex_replace(network, std::regex("hosts_per_leaf = 4"),
                                       "links_per_pair = 20000\nhosts_per_leaf = 30000");
  EXPECT_FALSE(read(wide + "[[workload]]\nkind = \"incast\"\n", complaints));
  EXPECT_EQ(complaints.text().find("s.toml:1:1: 560000 ports in the network; the simulator takes 524288"), 0u)
      << complaints.text();
}

TEST(Scenario, UnknownReceiverIsAllThatIsSaidOfItsIncast) {
  for (const char* senders : {"senders = 3\n", "from = [\"leaf1-host1\", \"leaf1-host2\"]\n"}) {
    Complaints complaints;
    EXPECT_FALSE(
        read(std::string(network) + "[[workload]]\nkind = \"incast\"\nreceiver = \"nobody\"\n" + senders,
             complaints));
    const auto text = complaints.text();
    EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
  }
}

TEST(Scenario, SpeedThatWouldBeSimulatedAsAnotherIsRefused) {
  const auto at = [](std::string_view speed) {
    std::string text = network + "[[workload]]\nkind = \"permutation\"\n";
    text.replace(text.find("400G"), 4, speed);
    Complaints complaints;
    read(text, complaints);
    return complaints.text();
  };
  for (const auto* speed : {"1G", "10G", "25G", "40G", "50G", "100G", "200G", "400G", "800G"})
    EXPECT_EQ(at(speed), "") << speed;
  for (const auto* speed : {"1600G", "10T", "600G"})
    EXPECT_NE(at(speed).find("s.toml:3:1: the simulator cannot send at"), std::string::npos) << at(speed);
}

TEST(Timeout, is_a_time_or_infinibands_code) {
  const auto& knob = *find_knob("timeout");
  const std::pair<const char*, double> rows[] = {
      {"14", 67'108'864}, {"1", 8192}, {"24", 68'719'476'736}, {"4ms", 4e6}, {"67.108864 ms", 67'108'864}};
  for (const auto& [text, ns] : rows) {
    Knobs knobs;
    EXPECT_EQ(set_knob(knobs, knob, text), "") << text;
    EXPECT_EQ(knobs.timeout_ns, ns) << text;
    const bool code = std::string_view(text).find('s') == std::string_view::npos;
    const auto scenario =
        must_read(network + "[transport]\ntimeout = " + (code ? text : '"' + std::string(text) + '"') +
                  "\n[[workload]]\nkind = \"incast\"\n");
    EXPECT_EQ(scenario.knobs.timeout_ns, ns) << text;
  }
  EXPECT_EQ(Knobs{}.timeout_ns, 67'108'864);
  for (const char* text : {"0", "32", "14.5", "-1", "25", "4mm"}) {
    Knobs knobs;
    EXPECT_NE(set_knob(knobs, knob, text), "") << text;
    EXPECT_EQ(knobs.timeout_ns, Knobs{}.timeout_ns) << text;
  }
}

TEST(Knob, EachIsFoundByItsNamesAndRefusesNonsense) {
  for (const auto& knob : knobs()) {
    EXPECT_EQ(find_knob(std::string(knob.table) + "." + std::string(knob.key)), &knob);
    EXPECT_EQ(find_knob(knob.key), &knob) << "keys are unique: " << knob.key;
    Knobs values;
    EXPECT_NE(set_knob(values, knob, "perhaps"), "") << knob.key;
    EXPECT_NE(set_knob(values, knob, ""), "") << knob.key;
  }
  EXPECT_EQ(find_knob("alhpa"), nullptr);
}

}  // namespace
}  // namespace weir::fabric::sim
