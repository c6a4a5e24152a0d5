// Innocent victims: PFC stops a link for all its flows, and bandwidth is shared by port, not by flow.
#include <gtest/gtest.h>

#include "tests/sim/small_fabrics.hpp"

namespace weir::fabric::sim {
namespace {

void times_in_ticks(rnic::congestion::DcqcnParameters& dcqcn) {
  for (auto* time : {&dcqcn.alpha_interval, &dcqcn.increase_interval, &dcqcn.notification_interval})
    *time *= ticks_per_ns;
}

// Two switches and a link of 400 Gb/s: `near` hosts at the first, `far` at the second.
struct TwoSwitches {
  Builder builder;
  std::uint32_t between = 0;  // the first switch's port towards the second

  TwoSwitches(const SmallSwitch& small, unsigned near, unsigned far) : builder(small) {
    const auto first = builder.add_switch("s0"), second = builder.add_switch("s1");
    for (unsigned i = 0; i < near; ++i) builder.add_host(first);
    for (unsigned i = 0; i < far; ++i) builder.add_host(second);
    between = builder.connect(first, second, 400);
    builder.begin_routes();
    for (unsigned i = 0; i < near + far; ++i) {
      builder.route(first, i, {i < near ? builder.facing(i) : between});
      builder.route(second, i, {i < near ? between + 1 : builder.facing(i)});
    }
  }
};

struct Case {
  const char* name;
  bool dcqcn;
  std::uint8_t victims_priority;
  double slowdown_from, slowdown_to;
};
void PrintTo(const Case& row, std::ostream* out) { *out << row.name; }

class Victim : public testing::TestWithParam<Case> {};

// Hosts 0, 1 and 2 fill host 4's link; host 3 alone sends to host 5, over the same link between the switches.
TEST_P(Victim, OfAnIncastItHasNoPartIn) {
  SmallSwitch small;
  if (GetParam().dcqcn) small.wred = {40'000, 160'000, 0.2};
  const TwoSwitches network(small, 4, 2);
  Experiment run = bare_run();
  if (GetParam().dcqcn) run.transport.control = CongestionControl::dcqcn;
  times_in_ticks(run.transport.dcqcn_parameters);
  for (std::uint32_t i = 0; i < 3; ++i) run.flows.push_back({20'000'000, 0, i, 4});
  run.flows.push_back({5'000'000, 500 * ticks_per_us, 3, 5});
  run.flows.back().priority = GetParam().victims_priority;
  run.duration = 40 * ticks_per_ms;
  Simulation simulation(network.builder.fabric, run);
  simulation.run_all();
  const auto& victim = simulation.results()[3];
  ASSERT_NE(victim.arrived, no_time);
  const double slowdown =
      static_cast<double>(victim.arrived - victim.started) / static_cast<double>(victim.ideal);
  EXPECT_GE(slowdown, GetParam().slowdown_from);
  EXPECT_LE(slowdown, GetParam().slowdown_to);
  EXPECT_EQ(simulation.totals().lossless_drops, 0u);
}

// With PFC only, the link carries what host 4's link drains, by turns, so the victim gets as much as each
// culprit: a third of its own link's speed, once the initial queue is gone.
INSTANTIATE_TEST_SUITE_P(All, Victim,
                         testing::Values(Case{"same_priority", false, 3, 2.9, 3.3},
                                         Case{"same_priority_with_dcqcn", true, 3, 1, 1.6},
                                         Case{"another_priority", false, 5, 1, 1.05}),
                         [](const auto& row) { return row.param.name; });

// Two flows arrive through one port, a third through its own: PFC stops ports, so the third gets half of the
// receiver's link and the others a quarter each.
TEST(Unfairness, PfcSharesByPortAndNotByFlow) {
  SmallSwitch small;
  const TwoSwitches network(small, 2, 2);  // hosts 0 and 1 share the link between; host 2 sits with host 3
  Experiment run = bare_run();
  for (std::uint32_t i = 0; i < 3; ++i) run.flows.push_back({200'000'000, 0, i, 3});
  run.duration = 10 * ticks_per_ms;
  Simulation simulation(network.builder.fabric, run);
  const auto sent = [&](std::uint32_t host) {
    return static_cast<double>(simulation.queue(network.builder.host_ports[host], 3).sent_bytes);
  };
  const Ticks full = 2 * ticks_per_ms;  // by then the buffers are full, and sending equals draining
  while (simulation.run_some(1u << 20, full) && simulation.now() < full) {
  }
  const double before[] = {sent(0), sent(1), sent(2)};
  simulation.run_all();
  const double one = sent(0) - before[0], other = sent(1) - before[1], alone = sent(2) - before[2];
  // Less than 2, because more arrives after XOFF through the faster port and fills more headroom.
  EXPECT_GT(alone / one, 1.75);
  EXPECT_LT(alone / one, 2);
  EXPECT_NEAR(other / one, 1, 0.05);
}

// A host that stops its port forever stops unrelated flows through its switch; the watchdog frees them.
struct Rescue {
  const char* name;
  bool watchdog;
  WatchdogAction action;
  bool free;
};
void PrintTo(const Rescue& row, std::ostream* out) { *out << row.name; }

class PauseStorm : public testing::TestWithParam<Rescue> {};

TEST_P(PauseStorm, HoldsUpOthersUntilTheWatchdogActs) {
  const TwoSwitches network({}, 2, 2);
  Experiment run = bare_run();
  run.transport.retransmission_timeout = 2 * ticks_per_ms;
  run.flows.push_back({20'000'000, 0, 0, 2});                // to the host that storms
  run.flows.push_back({2'000'000, 1 * ticks_per_ms, 1, 3});  // to its neighbour
  run.duration = 20 * ticks_per_ms;
  run.storms.push_back({0, run.duration, 2, 3});
  run.watchdog = {GetParam().watchdog, GetParam().action, 200 * ticks_per_us, 2 * ticks_per_ms,
                  2 * ticks_per_ms};
  Simulation simulation(network.builder.fabric, run);
  simulation.run_all();
  EXPECT_EQ(simulation.results()[1].arrived != no_time, GetParam().free);
  const auto detected = std::ranges::count_if(simulation.incidents(), [&](const Incident& incident) {
    return incident.kind == Incident::Kind::storm_detected && incident.ports[0] == network.builder.facing(2);
  });
  EXPECT_EQ(detected, GetParam().watchdog ? 1 : 0);
}

INSTANTIATE_TEST_SUITE_P(All, PauseStorm,
                         testing::Values(Rescue{"without_one", false, WatchdogAction::drop, false},
                                         Rescue{"that_only_tells", true, WatchdogAction::alert, false},
                                         Rescue{"that_drops", true, WatchdogAction::drop, true},
                                         Rescue{"that_forwards", true, WatchdogAction::forward, true}),
                         [](const auto& row) { return row.param.name; });

// Marks on a queue of constant length: none below Kmin, all from Kmax on, the line in between.
TEST(Marks, SetInTheSimulatorAsOftenAsTheCurveSays) {
  struct Row {
    std::uint32_t kmin, kmax;
    double pmax, least, most;
  };
  // One receiver at 100 Gb/s, two senders at 100 Gb/s, no PFC: the queue grows by a frame for each that
  // leaves, from nothing to half of 4000 frames of 1048 bytes. The share of marked packets is the mean of the
  // curve over that.
  constexpr std::uint32_t peak = 2000 * 1048;
  const Row rows[] = {{peak + 1048, 2 * peak, 1, 0, 0},         // never that long
                      {0, 1, 1, 0.99, 1},                       // from the first packet on
                      {peak / 2, peak / 2 + 1, 1, 0.49, 0.51},  // half of the time
                      {0, peak, 1, 0.47, 0.53},                 // rising all the time
                      {0, peak, 0.2, 0.08, 0.12}};
  for (const auto& row : rows) {
    SmallSwitch small;
    small.shared_bytes = 40'000'000;
    small.alpha = 8;
    small.wred = {row.kmin, row.kmax, row.pmax};
    const auto network = star(small, 3);
    Experiment run = bare_run();
    run.flows.push_back({2'000'000, 0, 0, 2});
    run.flows.push_back({2'000'000, 0, 1, 2});
    Simulation simulation(network.fabric, run);
    simulation.run_all();
    const double part = static_cast<double>(simulation.totals().marked) / 4000;
    EXPECT_GE(part, row.least) << row.kmin << ' ' << row.kmax << ' ' << row.pmax;
    EXPECT_LE(part, row.most) << row.kmin << ' ' << row.kmax << ' ' << row.pmax;
  }
}

// Three packets meet in a queue, one frame of which is enough for a mark: the second leaves the third behind,
// and the third finds the second.
TEST(Marks, tell_of_the_queue_where_the_setting_says) {
  const std::pair<MarkAt, std::size_t> rows[] = {{MarkAt::dequeue, 1}, {MarkAt::enqueue, 2}};
  for (const auto& [place, marked] : rows) {
    SmallSwitch small;
    small.wred = {1048, 1048, 1};
    const auto network = star(small, 4);
    Experiment run = bare_run();
    run.transport.control = CongestionControl::dcqcn;
    run.mark_at = place;
    for (std::uint32_t i = 0; i < 3; ++i) run.flows.push_back({1000, i * ticks_per_ns, i, 3});
    Simulation simulation(network.fabric, run);
    simulation.run_all();
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_EQ(simulation.results()[i].cnps, i == marked ? 1u : 0u) << static_cast<int>(place) << ' ' << i;
  }
}

}  // namespace
}  // namespace weir::fabric::sim
