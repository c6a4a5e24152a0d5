// The simulator compared with what formulas and published measurements say about lossless Ethernet.
#include <gtest/gtest.h>

#include "tests/sim/small_fabrics.hpp"

namespace weir::fabric::sim {
namespace {

FlowSpec flow(std::uint32_t from, std::uint32_t to, std::uint64_t bytes, Ticks start = 0) {
  FlowSpec spec;
  spec.source = from;
  spec.destination = to;
  spec.bytes = bytes;
  spec.start = start;
  return spec;
}

Experiment incast(unsigned senders, std::uint64_t bytes) {
  Experiment run = bare_run();
  for (unsigned i = 0; i < senders; ++i) run.flows.push_back(flow(i, senders, bytes));
  return run;
}

TEST(Incast, TakesAsLongAsTheReceiversLink) {
  const auto network = star({}, 61);
  Experiment run = incast(60, 1'000'000);
  run.duration = 20 * ticks_per_ms;
  Simulation simulation(network.fabric, run);
  simulation.run_all();
  Ticks last = 0;
  for (const auto& result : simulation.results()) {
    ASSERT_NE(result.arrived, no_time);
    last = std::max(last, result.arrived);
  }
  // 60 x 1 MB, in frames of 1048 bytes for 1000 of payload: 5.030 ms, plus less than 1 % for the path and
  // PFC's pauses.
  EXPECT_GE(to_us(last), 5030.4);
  EXPECT_LE(to_us(last), 5030.4 * 1.01);
  EXPECT_EQ(simulation.totals().lossless_drops, 0u);
  EXPECT_GT(simulation.totals().pfc_frames, 0u);
}

struct Edge {
  unsigned senders;
  std::uint32_t headroom_bytes;
  bool drops;
};

void PrintTo(const Edge& edge, std::ostream* out) {
  *out << edge.senders << " senders, " << edge.headroom_bytes << " bytes";
}

class ZeroLossEdge : public testing::TestWithParam<Edge> {};

TEST_P(ZeroLossEdge, IsWhereTheFormulaHasIt) {
  // S (1 + floor((2 d R + S + x) / S)): 14 frames of 1048 bytes at 100 Gb/s over 500 ns.
  SmallSwitch small;
  small.headroom_bytes = GetParam().headroom_bytes;
  const auto network = star(small, GetParam().senders + 1);
  Experiment run = incast(GetParam().senders, 5'000'000);
  run.duration = 20 * ticks_per_ms;
  Simulation simulation(network.fabric, run);
  simulation.run_all();
  EXPECT_GT(simulation.totals().pfc_frames, 0u);
  if (GetParam().drops)
    EXPECT_GT(simulation.totals().lossless_drops, 50u);
  else
    EXPECT_EQ(simulation.totals().lossless_drops, 0u);
}

INSTANTIATE_TEST_SUITE_P(Senders, ZeroLossEdge,
                         testing::Values(Edge{4, 14672, false}, Edge{4, 14671, true}, Edge{8, 14672, false},
                                         Edge{8, 14671, true}, Edge{16, 14672, false}, Edge{16, 14671, true}),
                         [](const auto& row) {
                           return std::to_string(row.param.senders) + "_senders_" +
                                  std::to_string(row.param.headroom_bytes) + "_bytes";
                         });

struct Division {
  unsigned queues;
  double alpha;
};

void PrintTo(const Division& row, std::ostream* out) { *out << row.queues << " queues, alpha " << row.alpha; }

class DynamicThreshold : public testing::TestWithParam<Division> {};

TEST_P(DynamicThreshold, GivesEachCongestedQueueItsShare) {
  // alpha B / (1 + n alpha); each ingress is congested by its own sender towards one stopped receiver.
  const std::uint64_t pool = 4'092'016;
  const auto [queues, alpha] = GetParam();
  SmallSwitch small;
  small.shared_bytes = pool;
  small.alpha = alpha;
  const auto network = star(small, queues + 1);
  Experiment run = incast(queues, 20'000'000);
  run.duration = 1 * ticks_per_ms;
  run.storms.push_back({0, run.duration, queues, 3});  // the receiver accepts nothing
  Simulation simulation(network.fabric, run);
  simulation.run_all();
  const double share = alpha * static_cast<double>(pool) / (1 + queues * alpha);
  for (unsigned i = 0; i < queues; ++i) {
    const auto& group = simulation.group(network.facing(i), 3);
    EXPECT_LE(group.used_shared, share + 1048);
    EXPECT_GE(group.used_shared, share - 2 * 1048 * (1 + alpha)) << "of queue " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Closed, DynamicThreshold,
                         testing::Values(Division{2, 1}, Division{1, 1.0 / 128}, Division{1, 1.0 / 8},
                                         Division{4, 1}, Division{8, 0.5}, Division{3, 2}, Division{2, 4}),
                         [](const auto& row) { return "row" + std::to_string(row.index); });

TEST(Pause, RunsOutAfterItsQuanta) {
  // 65535 quanta of 512 bits at 100 Gb/s are 335.54 us: one XOFF, then silence for that long.
  const auto network = star({}, 2);
  Experiment run = bare_run();
  run.flows.push_back(flow(0, 1, 2'000'000));
  run.duration = 5 * ticks_per_ms;
  run.storms.push_back({10 * ticks_per_us, 10 * ticks_per_us, 1, 3});
  Simulation simulation(network.fabric, run);
  simulation.run_all();
  const auto port = network.facing(1);
  EXPECT_EQ(simulation.pfc(port, 3).received_xoff, 1u);
  EXPECT_EQ(simulation.pfc(port, 3).received_xon, 0u);
  EXPECT_NEAR(to_us(simulation.paused_time(port, 3)), 335.54, 0.005);
  EXPECT_EQ(simulation.totals().finished, 1u);
}

TEST(Pause, StopsItsPriorityOnly) {
  const auto network = star({}, 3);
  Experiment run = bare_run();
  run.flows.push_back(flow(0, 2, 100'000));
  run.flows.push_back(flow(1, 2, 100'000));
  run.flows[1].priority = 0;
  run.duration = 1 * ticks_per_ms;
  run.storms.push_back({0, run.duration, 2, 3});
  Simulation simulation(network.fabric, run);
  simulation.run_all();
  EXPECT_EQ(simulation.results()[0].arrived, no_time);
  EXPECT_NE(simulation.results()[1].arrived, no_time);
}

TEST(Flow, AloneTakesItsIdealTime) {
  for (const std::uint64_t bytes : {1ull, 1000ull, 1001ull, 1'234'567ull}) {
    const auto network = star({}, 2);
    Experiment run = bare_run();
    run.flows.push_back(flow(0, 1, bytes));
    Simulation simulation(network.fabric, run);
    simulation.run_all();
    const auto& result = simulation.results()[0];
    EXPECT_EQ(result.arrived - result.started, result.ideal) << bytes << " bytes";
  }
}

// Two senders in step share a lossy buffer: neither may lose all that is lost.
TEST(Lossy, equal_senders_lose_equally) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    SmallSwitch small;
    small.lossless = false;
    small.shared_bytes = 200'000;
    const auto network = star(small, 3);
    Experiment run = bare_run();
    run.seed = seed;
    run.duration = 20 * ticks_per_ms;
    run.transport.retransmission_timeout = 100 * ticks_per_us;
    run.flows.push_back({16'000'000, 0, 0, 2});
    run.flows.push_back({16'000'000, 0, 1, 2});
    Simulation simulation(network.fabric, run);
    simulation.run_all();
    const double one = simulation.results()[0].retransmitted, other = simulation.results()[1].retransmitted;
    EXPECT_GT(std::min(one, other), 0.5 * std::max(one, other)) << seed << ": " << one << ' ' << other;
  }
}

// Eight senders' messages wait for one link for 43 us, and each is acknowledged at its end.
TEST(Timeout, too_short_for_the_queue_resends_what_has_arrived) {
  const std::pair<Ticks, bool> rows[] = {{20 * ticks_per_us, true},
                                         {Transport{}.retransmission_timeout, false}};
  for (const auto& [timeout, needless] : rows) {
    SmallSwitch small;
    small.alpha = 8;
    const auto network = star(small, 9);
    Experiment run = incast(8, 64'000);
    run.transport.ack_every = 64;
    run.transport.retransmission_timeout = timeout;
    Simulation simulation(network.fabric, run);
    simulation.run_all();
    const auto& totals = simulation.totals();
    EXPECT_EQ(totals.finished, 8u);
    EXPECT_EQ(totals.lossless_drops, 0u);
    EXPECT_EQ(totals.retransmitted != 0, needless) << timeout;
    EXPECT_EQ(totals.spurious != 0, needless) << timeout;
  }
}

// Two senders that together are too fast for a lossy buffer: what is sent again was lost.
TEST(Lossy, resent_packets_are_not_needless) {
  SmallSwitch small;
  small.lossless = false;
  small.shared_bytes = 200'000;
  const auto network = star(small, 3);
  Experiment run = incast(2, 1'000'000);
  run.duration = 200 * ticks_per_ms;
  Simulation simulation(network.fabric, run);
  simulation.run_all();
  EXPECT_GT(simulation.totals().retransmitted, 0u);
  EXPECT_EQ(simulation.totals().spurious, 0u);
}

TEST(Lossy, IncastDropsAndGoesBack) {
  SmallSwitch small;
  small.lossless = false;
  small.shared_bytes = 200'000;
  const auto network = star(small, 9);
  Experiment run = incast(8, 200'000);
  run.transport.retransmission_timeout = 100 * ticks_per_us;
  run.duration = 50 * ticks_per_ms;
  Simulation simulation(network.fabric, run);
  simulation.run_all();
  EXPECT_GT(simulation.totals().ingress_drops + simulation.totals().egress_drops, 0u);
  EXPECT_GT(simulation.totals().retransmitted, 0u);
  EXPECT_EQ(simulation.totals().finished, 8u);
  EXPECT_EQ(simulation.totals().delivered_bytes, 8u * 200'000);
  EXPECT_EQ(simulation.totals().pfc_frames, 0u);
}

// Five switches in a ring with one host each; flows from i to i + hops, the short way around by static
// routes.
struct Ring {
  Builder builder;
  std::vector<std::uint32_t> switches, clockwise;

  explicit Ring(const SmallSwitch& small) : builder(small) {
    for (int i = 0; i < 5; ++i)
      switches.push_back(builder.add_switch(std::string("s").append(std::to_string(i))));
    for (int i = 0; i < 5; ++i) builder.add_host(switches[i]);
    for (int i = 0; i < 5; ++i) clockwise.push_back(builder.connect(switches[i], switches[(i + 1) % 5]));
    builder.begin_routes();
    for (int at = 0; at < 5; ++at)
      for (std::uint32_t host = 0; host < 5; ++host)
        builder.route(switches[at], host,
                      {host == static_cast<std::uint32_t>(at) ? builder.facing(host) : clockwise[at]});
  }
};

struct Cure {
  const char* name;
  unsigned flows;
  unsigned hops;
  bool dcqcn;
  bool deadlock;
};

void PrintTo(const Cure& cure, std::ostream* out) { *out << cure.name; }

class DeadlockRing : public testing::TestWithParam<Cure> {};

TEST_P(DeadlockRing, EndsAsTheTheorySays) {
  SmallSwitch small;
  small.shared_bytes = 4'000'000;
  small.alpha = 1.0 / 8;
  if (GetParam().dcqcn) small.wred = {100'000, 400'000, 0.2};
  const Ring ring(small);
  Experiment run = bare_run();
  if (GetParam().dcqcn) run.transport.control = CongestionControl::dcqcn;
  auto& dcqcn = run.transport.dcqcn_parameters;
  for (auto* time : {&dcqcn.alpha_interval, &dcqcn.increase_interval, &dcqcn.notification_interval})
    *time *= ticks_per_ns;
  for (std::uint32_t i = 0; i < GetParam().flows; ++i)
    run.flows.push_back(flow(i, (i + GetParam().hops) % 5, 20'000'000));
  run.duration = 60 * ticks_per_ms;
  run.deadlock_check = ticks_per_ms;
  Simulation simulation(ring.builder.fabric, run);
  simulation.run_all();
  EXPECT_EQ(simulation.totals().finished, GetParam().deadlock ? 0u : GetParam().flows);
  EXPECT_EQ(simulation.totals().lossless_drops, 0u);
  const auto incidents = simulation.incidents();
  if (!GetParam().deadlock) {
    EXPECT_TRUE(incidents.empty());
    return;
  }
  ASSERT_EQ(incidents.size(), 1u);
  EXPECT_EQ(incidents[0].kind, Incident::Kind::deadlock);
  std::vector<std::uint32_t> cycle = incidents[0].ports;
  std::sort(cycle.begin(), cycle.end());
  EXPECT_EQ(cycle, ring.clockwise);
}

INSTANTIATE_TEST_SUITE_P(Cures, DeadlockRing,
                         testing::Values(Cure{"pfc_only", 5, 2, false, true},
                                         Cure{"one_flow_less", 4, 2, false, false},
                                         Cure{"one_hop", 5, 1, false, false},
                                         Cure{"dcqcn", 5, 2, true, false}),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace weir::fabric::sim
