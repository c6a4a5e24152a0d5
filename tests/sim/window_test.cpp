// How much a flow may have in flight: a window in bytes or in round trips, and one that follows the flow's
// rate.
#include <gtest/gtest.h>

#include "fabric/sim/scenario.hpp"
#include "tests/sim/four_leaves.hpp"
#include "tests/sim/small_fabrics.hpp"

namespace weir::fabric::sim {
namespace {

Ticks time_alone(const Transport& transport) {
  const auto network = star({}, 2);
  Experiment run = bare_run();
  run.transport = transport;
  run.flows.push_back({1'000'000, 0, 0, 1});
  Simulation simulation(network.fabric, run);
  simulation.run_all();
  EXPECT_EQ(simulation.totals().finished, 1u);
  return simulation.results()[0].arrived;
}

// 100 Gb/s send 12.5 kB, 13 packets of 1000 bytes, in 1 us or a little less.
TEST(Window, in_time_is_what_the_line_sends_in_it) {
  auto in_bytes = bare_run().transport, in_time = in_bytes;
  in_bytes.window_bytes = 13'000;
  for (const Ticks time : {ticks_per_us, ticks_per_us - 30 * ticks_per_ns}) {
    in_time.window_time = time;
    EXPECT_EQ(time_alone(in_time), time_alone(in_bytes)) << time;
  }
  in_time.window_time = 2 * ticks_per_us;
  EXPECT_LT(time_alone(in_time), time_alone(in_bytes));
  in_time.window_bytes = 13'000;
  EXPECT_EQ(time_alone(in_time), time_alone(in_bytes)) << "the smaller of both";
}

// A round trip of the star takes 2.17 us: 500 ns for each of four cables, 84 ns for each of two frames.
TEST(Window, of_a_round_trip_costs_nothing_and_less_does) {
  auto transport = bare_run().transport;
  const Ticks unlimited = time_alone(transport);
  transport.window_time = 22 * ticks_per_us / 10;
  EXPECT_EQ(time_alone(transport), unlimited);
  transport.window_time = 11 * ticks_per_us / 10;
  EXPECT_GT(time_alone(transport), 1.8 * unlimited);
}

TEST(Window, that_follows_the_rate_keeps_queues_shorter) {
  SmallSwitch small;
  small.alpha = 8;
  small.wred = {50'000, 200'000, 0.2};
  const auto network = star(small, 17);
  std::uint64_t most[2];
  for (const bool by_rate : {false, true}) {
    Experiment run = bare_run();
    run.transport.control = CongestionControl::dcqcn;
    run.transport.window_time = 22 * ticks_per_us / 10;
    run.transport.window_by_rate = by_rate;
    for (std::uint32_t i = 0; i < 16; ++i) run.flows.push_back({2'000'000, i * 100 * ticks_per_us, i, 16});
    run.duration = 50 * ticks_per_ms;
    Simulation simulation(network.fabric, run);
    simulation.run_all();
    EXPECT_EQ(simulation.totals().finished, 16u) << by_rate;
    most[by_rate] = simulation.queue(network.facing(16), 3).bytes_most;
  }
  EXPECT_LT(most[true], most[false]);
}

// Nobody answers the ninth packet of a window of eight if ACKs are for sixteen.
TEST(Window, smaller_than_acknowledgements_are_apart_ends) {
  auto transport = bare_run().transport;
  transport.ack_every = 16;
  transport.window_bytes = 8'000;
  transport.retransmission_timeout = ticks_per_s;
  EXPECT_LT(time_alone(transport), ticks_per_ms);
}

// Rates that fall close windows behind packets that asked for nothing.
TEST(Window, that_shrinks_in_flight_ends) {
  auto scenario = must_read(network +
                            "[simulation]\nduration = \"20ms\"\n[dcqcn]\npreset = \"hpcc-window\"\n"
                            "[[workload]]\nkind = \"incast\"\nsenders = 15\nbytes = \"1MB\"\n");
  const auto prepared = prepare(scenario, scenario.knobs);
  ASSERT_EQ(prepared.experiment.transport.ack_every, 16u);
  Simulation simulation(prepared.fabric, prepared.experiment);
  simulation.run_all();
  EXPECT_EQ(simulation.totals().finished, 15u);
}

TEST(Window, of_a_scenario_is_its_presets_or_its_own) {
  struct Row {
    const char* settings;
    double rtts;
    bool by_rate;
  };
  const Row rows[] = {
      {"[dcqcn]\npreset = \"hpcc\"\n", 0, false},
      {"[dcqcn]\npreset = \"hpcc-window\"\n", 1, true},
      {"[transport]\nwindow_rtts = 2\n[dcqcn]\npreset = \"hpcc-window\"\n", 2, true},
      {"[transport]\nwindow_by_rate = \"no\"\n[dcqcn]\npreset = \"hpcc-window\"\n", 1, false},
      {"[transport]\nwindow_rtts = 0.5\n", 0.5, false},
      {"[transport]\ncongestion_control = \"none\"\n[dcqcn]\npreset = \"hpcc-window\"\n", 0, false}};
  const std::string workload = "[[workload]]\nkind = \"incast\"\nsenders = 2\nbytes = \"100KB\"\n";
  for (const auto& row : rows) {
    const auto scenario = must_read(network + row.settings + workload);
    const auto transport = prepare(scenario, scenario.knobs).experiment.transport;
    EXPECT_EQ(transport.window_time, from_ns(row.rtts * scenario.plan.rtt_ns)) << row.settings;
    EXPECT_EQ(transport.window_by_rate, row.by_rate) << row.settings;
  }
  auto plain = must_read(network + rows[0].settings + workload),
       windowed = must_read(network + rows[1].settings + workload);
  EXPECT_EQ(prepare(plain, plain.knobs).experiment.transport.dcqcn_parameters.alpha_interval,
            prepare(windowed, windowed.knobs).experiment.transport.dcqcn_parameters.alpha_interval);
}

}  // namespace
}  // namespace weir::fabric::sim
