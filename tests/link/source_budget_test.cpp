// How much of what strangers send is looked at.
#include "link/udp/source_budget.hpp"

#include <gtest/gtest.h>

namespace weir::link {
namespace {

using Is = SourceBudget::Is;
constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr hash::SipKey key{1, 2};

IpAddress v4(std::uint8_t third, std::uint8_t last) {
  IpAddress ip{};
  std::ranges::copy(mapped, ip.begin());
  ip[12] = 10;
  ip[14] = third;
  ip[15] = last;
  return ip;
}
IpAddress v6(std::uint8_t network, std::uint8_t host) {
  IpAddress ip{};
  ip[0] = 0x20;
  ip[5] = network;
  ip[15] = host;
  return ip;
}

// How many of `wanted` a second's even stream gets.
int taken(SourceBudget& budget, const IpAddress& source, int wanted, Is what,
          std::uint64_t from_ns = second_ns) {
  int got = 0;
  for (int i = 0; i < wanted; ++i)
    got +=
        budget.take(source, what,
                    from_ns + second_ns * static_cast<std::uint64_t>(i) / static_cast<std::uint64_t>(wanted))
            ? 1
            : 0;
  return got;
}

TEST(SourceBudget, grants_a_network_its_rate_and_a_burst) {
  SourceBudget budget({100, 10}, {1'000'000, 1'000'000}, key);
  EXPECT_NEAR(taken(budget, v4(1, 1), 60'000, Is::stranger), 110, 2);
  EXPECT_EQ(taken(budget, v4(1, 1), 50, Is::stranger, 3 * second_ns), 50) << "less than its rate";
}

TEST(SourceBudget, is_shared_by_the_addresses_of_a_network) {
  SourceBudget budget({100, 10}, {1'000'000, 1'000'000}, key);
  for (const auto& [one, same, other] :
       {std::tuple{v4(1, 1), v4(1, 200), v4(2, 1)}, std::tuple{v6(1, 1), v6(1, 200), v6(2, 1)}}) {
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(budget.take(one, Is::stranger, second_ns));
    EXPECT_FALSE(budget.take(same, Is::stranger, second_ns));
    EXPECT_TRUE(budget.take(other, Is::stranger, second_ns));
  }
}

TEST(SourceBudget, of_all_strangers_leaves_peers_theirs) {
  SourceBudget budget({1'000, 1'000}, {500, 50}, key);
  int strangers = 0;
  for (int i = 0; i < 60'000; ++i)
    strangers += budget.take(v4(static_cast<std::uint8_t>(i % 250), 1), Is::stranger, second_ns) ? 1 : 0;
  EXPECT_EQ(strangers, 50);
  EXPECT_TRUE(budget.take(v4(251, 1), Is::peer, second_ns));
  EXPECT_FALSE(budget.take(v4(252, 1), Is::stranger, second_ns));
}

}  // namespace
}  // namespace weir::link
