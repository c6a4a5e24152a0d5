// Congestion control by acknowledgements as dialogues: what an acknowledgement brings, and the rate after it.
#include "rnic/congestion/acknowledged_rate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace weir::rnic::congestion {
namespace {

constexpr double line = 100e9;
constexpr PathFacts path{.line_rate = line, .base_rtt = 10'000, .packet_bits = 8000, .time_units_per_s = 1e9};

Feedback ack(std::uint32_t acknowledged, std::uint32_t next, bool marked = false, Time round_trip = 10'000) {
  Feedback feedback;
  feedback.now = Time{acknowledged} * 1'000;
  feedback.round_trip = round_trip;
  feedback.acknowledged = acknowledged;
  feedback.next = next;
  feedback.marked = marked;
  return feedback;
}

TEST(Dctcp, cuts_once_a_round_by_half_of_alpha) {
  DctcpParameters parameters;
  parameters.g = 1;
  Dctcp dctcp(line);
  dctcp.on_ack(parameters, path, ack(1, 11, true));  // a round of one packet, which was marked: alpha is 1
  EXPECT_DOUBLE_EQ(dctcp.alpha(), 1);
  EXPECT_DOUBLE_EQ(dctcp.rate(), line / 2);
  for (std::uint32_t i = 2; i <= 11; ++i) dctcp.on_ack(parameters, path, ack(i, i + 10, i % 2 == 0));
  EXPECT_DOUBLE_EQ(dctcp.rate(), line / 2);
  dctcp.on_ack(parameters, path, ack(12, 22, true));  // of eleven packets six
  EXPECT_DOUBLE_EQ(dctcp.alpha(), 6.0 / 11);
  EXPECT_DOUBLE_EQ(dctcp.rate(), line / 2 * (1 - 3.0 / 11));
}

TEST(Dctcp, adds_a_step_for_each_round_without_marks) {
  const DctcpParameters parameters;
  Dctcp dctcp(line);
  dctcp.on_ack(parameters, path, ack(1, 11, true));
  const double low = dctcp.rate();
  ASSERT_LT(low, line);
  dctcp.on_ack(parameters, path, ack(12, 22));
  EXPECT_DOUBLE_EQ(dctcp.rate(), low + parameters.additive_increase * line);
}

// One link of the line's speed: `sent` bytes and `queue` bytes at `time`.
Feedback reading(std::uint32_t acknowledged, std::vector<LinkReading>& storage, Time time, std::uint64_t sent,
                 std::uint32_t queue) {
  storage = {{time, sent, queue, line}};
  auto feedback = ack(acknowledged, acknowledged + 10);
  feedback.links = storage;
  return feedback;
}

// 125,000 bytes in 10 us are the line's; as many in the queue are a load of two.
TEST(Hpcc, sets_the_rate_by_the_load_of_the_busiest_link) {
  struct Row {
    std::uint64_t sent;
    std::uint32_t queue;
    double load;
  };
  for (const auto& [sent, queue, load] :
       {Row{125'000, 0, 1}, Row{125'000, 125'000, 2}, Row{62'500, 0, 0.5}}) {
    HpccParameters parameters;
    parameters.stages = 0;
    parameters.additive_increase = 0;
    std::vector<LinkReading> links;
    Hpcc hpcc(line);
    hpcc.on_ack(parameters, path, reading(1, links, 10'000, 0, queue));
    EXPECT_DOUBLE_EQ(hpcc.rate(), line) << "the first acknowledgement only begins";
    hpcc.on_ack(parameters, path, reading(12, links, 20'000, sent, queue));
    EXPECT_DOUBLE_EQ(hpcc.load(), load);
    EXPECT_DOUBLE_EQ(hpcc.rate(), std::min(line, line * parameters.target / load));
  }
}

TEST(Hpcc, takes_the_same_load_into_account_once_a_round) {
  HpccParameters parameters;
  parameters.additive_increase = 0;
  std::vector<LinkReading> links;
  Hpcc hpcc(line);
  hpcc.on_ack(parameters, path, reading(1, links, 10'000, 0, 125'000));
  for (const std::uint32_t of_the_round : {2, 3, 4})
    hpcc.on_ack(parameters, path,
                reading(of_the_round, links, of_the_round * 10'000, std::uint64_t{of_the_round - 1} * 125'000,
                        125'000));
  EXPECT_DOUBLE_EQ(hpcc.rate(), line * parameters.target / 2);
}

TEST(Hpcc, increases_in_stages_below_the_target) {
  HpccParameters parameters;
  parameters.stages = 2;
  parameters.additive_increase = 0.01;
  std::vector<LinkReading> links;
  Hpcc hpcc(line);
  hpcc.on_ack(parameters, path, reading(1, links, 10'000, 0, 875'000));
  hpcc.on_ack(parameters, path, reading(12, links, 20'000, 125'000, 875'000));  // load 8
  double expected = line * (parameters.target / 8 + 0.01);
  EXPECT_DOUBLE_EQ(hpcc.rate(), expected);
  for (std::uint32_t round = 0; round < 2; ++round) {
    hpcc.on_ack(parameters, path,
                reading(23 + 11 * round, links, 30'000 + 10'000 * round, 187'500 + 62'500 * round, 0));
    EXPECT_DOUBLE_EQ(hpcc.rate(), expected += 0.01 * line);
  }
  hpcc.on_ack(parameters, path, reading(45, links, 50'000, 312'500, 0));  // a load of one half, at last
  EXPECT_NEAR(hpcc.rate(), expected * parameters.target / 0.5 + 0.01 * line, 1);
}

TEST(Swift, cuts_by_the_excess_delay_once_a_round_trip) {
  SwiftParameters parameters;
  parameters.flow_scaling = 0;
  Swift swift(line);
  swift.on_ack(parameters, path, ack(1, 11, false, 25'000));  // 2.5 round trips; the target is 1.25
  EXPECT_DOUBLE_EQ(swift.rate(), line * (1 - 0.8 * 0.5));
  swift.on_ack(parameters, path, ack(2, 12, false, 25'000));
  EXPECT_DOUBLE_EQ(swift.rate(), line * 0.6);
  swift.on_ack(parameters, path, ack(27, 37, false, 1'000'000));
  EXPECT_DOUBLE_EQ(swift.rate(), line * 0.3) << "never by more than a half";
}

// 10 us at 100 Gb/s are 125 packets of 1000 bytes: one more is 0.8 Gb/s.
TEST(Swift, adds_a_packet_for_each_window_acknowledged) {
  SwiftParameters parameters;
  parameters.flow_scaling = 0;
  Swift swift(line);
  swift.on_ack(parameters, path, ack(1, 11, false, 25'000));
  swift.on_ack(parameters, path, ack(76, 86, false, 12'000));  // 75 packets: the window
  EXPECT_NEAR(swift.rate(), line * 0.6 + path.packet_rate(), 1);
}

TEST(Swift, lets_small_windows_wait_longer) {
  const SwiftParameters parameters;
  const Swift swift(line);
  EXPECT_DOUBLE_EQ(swift.target(parameters, 100), parameters.target);
  EXPECT_DOUBLE_EQ(swift.target(parameters, 1000), parameters.target);
  EXPECT_DOUBLE_EQ(swift.target(parameters, 0.1), parameters.target + parameters.flow_scaling);
  EXPECT_GT(swift.target(parameters, 1), swift.target(parameters, 10));
}

}  // namespace
}  // namespace weir::rnic::congestion
