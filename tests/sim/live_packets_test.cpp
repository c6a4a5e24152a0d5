// Packets from outside, among those of simulated flows.
#include <gtest/gtest.h>

#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "fabric/sim/simulation.hpp"
#include "small_fabrics.hpp"

namespace weir::fabric::sim {
namespace {

struct Ends final : LiveEnds {
  struct Arrival {
    Ticks at;
    std::uint32_t name;
    bool marked;
    bool operator==(const Arrival&) const = default;
  };
  std::vector<Arrival> came;
  std::vector<std::uint32_t> gone;
  void arrived(Ticks at, std::uint32_t name, bool marked) override { came.push_back({at, name, marked}); }
  void lost(Ticks, std::uint32_t name) override { gone.push_back(name); }
};

void run_until_quiet(Simulation& simulation) {
  while (simulation.next_time() != no_time) simulation.run_some(1, simulation.next_time());
}

// 100 Gb/s: 8 ticks a byte. Cables of 500 ns, frames without gaps (bare_run).
constexpr Ticks cable = 500 * ticks_per_ns;

TEST(LivePackets, TakeTheTimeOfTheirFramesAndCables) {
  const auto small = star({}, 2);
  const Experiment run = bare_run();
  Simulation simulation(small.fabric, run);
  Ends ends;
  simulation.carry(ends);
  simulation.send_live({.name = 7, .source = 0, .destination = 1, .bytes = 1000}, 12345);
  run_until_quiet(simulation);
  EXPECT_EQ(ends.came, (std::vector<Ends::Arrival>{{12345 + 2 * (8000 + cable), 7, false}}));
}

TEST(LivePackets, QueueBehindEachOtherAtTheHost) {
  const auto small = star({}, 2);
  const Experiment run = bare_run();
  Simulation simulation(small.fabric, run);
  Ends ends;
  simulation.carry(ends);
  for (std::uint32_t i = 0; i < 3; ++i)
    simulation.send_live({.name = i, .source = 0, .destination = 1, .bytes = 1000}, 100);
  run_until_quiet(simulation);
  ASSERT_EQ(ends.came.size(), 3u);
  EXPECT_EQ(ends.came[1].at - ends.came[0].at, 8000u);
  EXPECT_EQ(ends.came[2].at - ends.came[1].at, 8000u);
}

TEST(LivePackets, AreMarkedOnlyIfTheySayThatTheyMayBe) {
  SmallSwitch marking;
  marking.wred = {.kmin_bytes = 1, .kmax_bytes = 1, .pmax = 1};
  const auto small = star(marking, 3);
  const Experiment run = bare_run();
  Simulation simulation(small.fabric, run);
  Ends ends;
  simulation.carry(ends);
  for (std::uint32_t i = 0; i < 8; ++i)  // two senders: a queue at the switch
    simulation.send_live(
        {.name = i, .source = i % 2, .destination = 2, .bytes = 1000, .ecn_capable = i % 4 < 2}, 100);
  run_until_quiet(simulation);
  ASSERT_EQ(ends.came.size(), 8u);
  unsigned marked = 0;
  for (const auto& arrival : ends.came) {
    marked += arrival.marked;
    if (arrival.marked) {
      EXPECT_LT(arrival.name % 4, 2u);
    }
  }
  EXPECT_GT(marked, 0u);
}

TEST(LivePackets, AreLostWhereALossyQueueIsFull) {
  SmallSwitch full;
  full.lossless = false;
  full.shared_bytes = 3000;
  full.headroom_bytes = 0;
  full.alpha = 1;
  const auto small = star(full, 3);
  const Experiment run = bare_run();
  Simulation simulation(small.fabric, run);
  Ends ends;
  simulation.carry(ends);
  for (std::uint32_t i = 0; i < 20; ++i)
    simulation.send_live({.name = i, .source = i % 2, .destination = 2, .bytes = 1000}, 100);
  run_until_quiet(simulation);
  EXPECT_FALSE(ends.gone.empty());
  EXPECT_EQ(ends.gone.size() + ends.came.size(), 20u);
}

TEST(LivePackets, ShareThePortWithSimulatedFlows) {
  const auto small = star({}, 3);
  Experiment run = bare_run();
  run.flows.push_back({.bytes = 100'000, .start = 0, .source = 0, .destination = 2});
  Simulation simulation(small.fabric, run);
  Ends ends;
  simulation.carry(ends);
  simulation.send_live({.name = 1, .source = 1, .destination = 2, .bytes = 1000}, 0);
  simulation.run_some(100'000, 10 * ticks_per_ms);
  EXPECT_EQ(ends.came.size(), 1u);
  EXPECT_EQ(simulation.totals().finished, 1u);
}

// Ends that notify as receivers do: 8 queue pairs at once to one host, with nothing but DCQCN between them.
class Incast final : private LiveEnds {
 public:
  static constexpr std::uint32_t senders = 8, packets = 4000, bytes = 1048;

  explicit Incast(Simulation& simulation) : simulation_(simulation) {
    simulation_.carry(*this);
    for (std::uint32_t i = 0; i < packets; ++i)
      for (std::uint32_t s = 0; s < senders; ++s)
        simulation_.send_live({.name = s,
                               .source = s,
                               .destination = senders,
                               .bytes = bytes,
                               .ecn_capable = true,
                               .queue_pair = 17},
                              0);
  }
  void run() {
    while (left_ != 0 && simulation_.next_time() != no_time) {
      simulation_.run_some(1, simulation_.next_time());
      for (const std::uint32_t s : std::exchange(notify_, {}))
        simulation_.send_live({.name = notification,
                               .source = senders,
                               .destination = s,
                               .bytes = 78,
                               .priority = 6,
                               .kind = LivePacket::Kind::notification,
                               .queue_pair = 17},
                              simulation_.now());
    }
  }
  Ticks last() const { return last_; }
  std::uint64_t notifications() const { return notifications_; }

 private:
  static constexpr std::uint32_t notification = 99;
  void arrived(Ticks at, std::uint32_t name, bool marked) override {
    if (name == notification) return;
    last_ = at;
    --left_;
    if (!marked || !points_[name].on_marked(simulation_.experiment().transport.dcqcn_parameters, at)) return;
    ++notifications_;
    notify_.push_back(name);
  }
  void lost(Ticks, std::uint32_t) override { ADD_FAILURE() << "a packet was lost"; }

  Simulation& simulation_;
  std::array<rnic::congestion::NotificationPoint, senders> points_{};
  std::vector<std::uint32_t> notify_;
  std::uint64_t left_ = std::uint64_t{packets} * senders, notifications_ = 0;
  Ticks last_ = 0;
};

TEST(LivePackets, SlowDownAsSimulatedFlowsDo) {
  SmallSwitch marking;
  marking.wred = {.kmin_bytes = 100'000, .kmax_bytes = 400'000, .pmax = 0.2};
  const auto small = star(marking, Incast::senders + 1);
  Experiment run = bare_run();
  run.transport.control = CongestionControl::dcqcn;
  run.duration = 100 * ticks_per_ms;
  Simulation live(small.fabric, run);
  Incast incast(live);
  incast.run();
  EXPECT_GT(incast.notifications(), 100u);

  for (std::uint32_t s = 0; s < Incast::senders; ++s)
    run.flows.push_back({.bytes = std::uint64_t{run.transport.mtu_bytes} * Incast::packets,
                         .source = s,
                         .destination = Incast::senders});
  ASSERT_EQ(run.transport.mtu_bytes + run.transport.header_bytes, Incast::bytes);
  Simulation flows(small.fabric, run);
  flows.run_all();
  Ticks last = 0;
  for (const auto& result : flows.results()) last = std::max(last, result.arrived);
  EXPECT_NEAR(to_us(incast.last()) / to_us(last), 1, 0.02);
  EXPECT_NEAR(static_cast<double>(incast.notifications()) / static_cast<double>(flows.totals().cnps), 1, 0.1);
}

TEST(LivePackets, OfQueuePairsOfAHostTakeTurns) {
  const auto small = star({}, 2);
  const Experiment run = bare_run();
  Simulation simulation(small.fabric, run);
  Ends ends;
  simulation.carry(ends);
  for (const std::uint32_t name : {1, 2, 3, 11})
    simulation.send_live(
        {.name = name, .source = 0, .destination = 1, .bytes = 1000, .queue_pair = name / 10}, 100);
  run_until_quiet(simulation);
  std::vector<std::uint32_t> names;
  for (const auto& arrival : ends.came) names.push_back(arrival.name);
  EXPECT_EQ(names, (std::vector<std::uint32_t>{1, 2, 11, 3}));
}

}  // namespace
}  // namespace weir::fabric::sim
