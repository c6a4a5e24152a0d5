// The calendar of events compared with a sorted set: events come out in the order of their keys.
#include "fabric/sim/event_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "fabric/sim/random.hpp"

namespace weir::fabric::sim {
namespace {

struct Load {
  const char* name;
  std::uint32_t sources;
  std::uint32_t near, far;  // ticks ahead: most events, and one in `far_one_in`
  std::uint32_t far_one_in;
};

class Calendar : public testing::TestWithParam<Load> {};

TEST_P(Calendar, gives_keys_in_order) {
  constexpr std::uint64_t seed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const Load& load = GetParam();
  Random random(seed);
  PortEvents events(seed);
  std::multiset<std::uint64_t> expected;
  Ticks now = 0;
  const auto key = [&] {
    const std::uint32_t most = random.below(load.far_one_in) == 0 ? load.far : load.near;
    return events.key(now + 1 + random.below(most), random.below(load.sources));
  };
  for (int step = 0; step < 200'000; ++step) {
    ASSERT_EQ(events.empty(), expected.empty());
    const bool grow = random.below(100) < (step / 5000 % 2 == 0 ? 60u : 40u);
    if (expected.empty() || grow) {
      const auto pushed = key();
      events.push(pushed);
      expected.insert(pushed);
      continue;
    }
    ASSERT_EQ(events.top(), *expected.begin()) << "step " << step;
    // Time may also stop before the first event, if something else happened there.
    now = random.below(4) == 0 ? now : PortEvents::time_of(events.top());
    expected.erase(expected.begin());
    if (random.below(2) == 0) {
      events.pop();
      continue;
    }
    now = std::max(now, PortEvents::time_of(events.top()));
    const auto next = key();
    events.replace_top(next);
    expected.insert(next);
  }
  for (; !expected.empty(); expected.erase(expected.begin()), events.pop())
    ASSERT_EQ(events.top(), *expected.begin());
  EXPECT_TRUE(events.empty());
}

constexpr Load loads[] = {{"dense", 4000, 20'000, 400'000, 50},
                          {"crowded_in_one_stretch", 5000, 40, 100, 2},
                          {"sparse", 3, 5'000'000, 80'000'000, 3},
                          {"ties", 2, 4, 4, 2},
                          {"around_the_edge_of_the_ring", 100, 8192 * 64 + 200, 8192 * 64 * 3, 10}};
INSTANTIATE_TEST_SUITE_P(Loads, Calendar, testing::ValuesIn(loads),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(TieOrder, is_a_permutation_of_the_sources) {
  for (const std::uint64_t seed : {1, 2}) {
    const TieOrder order(seed);
    for (Ticks time = 8704; time < 9'000'000'000; time *= 7) {
      std::vector<bool> taken(TieOrder::mask + 1);
      for (std::uint32_t source = 0; source <= TieOrder::mask; ++source) {
        const std::uint32_t rank = order.rank(time, source);
        ASSERT_EQ(order.source(time, rank), source) << seed << ' ' << time;
        taken[rank] = true;
      }
      EXPECT_EQ(std::ranges::count(taken, true), TieOrder::mask + 1) << seed << ' ' << time;
    }
  }
}

// Frames of 1088 bytes at 100G end every 87.04 ns; at each of these times one of the ports is first.
TEST(TieOrder, puts_each_of_some_ports_first_equally_often) {
  constexpr int times = 30'000;
  for (const std::uint32_t ports : {2u, 3u, 16u}) {
    for (const std::uint64_t seed : {1, 7}) {
      const TieOrder order(seed);
      std::vector<int> first(ports);
      for (Ticks time = 8704; time <= Ticks{times} * 8704; time += 8704) {
        std::uint32_t best = 0;
        for (std::uint32_t port = 1; port < ports; ++port)
          if (order.rank(time, 2 * port) < order.rank(time, 2 * best)) best = port;
        ++first[best];
      }
      for (std::uint32_t port = 0; port < ports; ++port)
        EXPECT_NEAR(first[port], times / ports, times / ports / 10) << ports << ' ' << seed << ' ' << port;
    }
  }
}

}  // namespace
}  // namespace weir::fabric::sim
