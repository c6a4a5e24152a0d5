// From where peers tried what they have no right to, and for whom the door is shut.
#include "rdma/engine/trespass.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::rdma {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

Endpoint at(const std::string& address, std::uint16_t port = 4711) {
  return {asio::ip::make_address(address), port};
}

struct TrespassesTest : testing::Test {
  Trespasses trespasses;
  Trespasses::Time now{std::chrono::hours(1)};
  const Endpoint ours = at("10.0.0.1", 6379);

  Trespasses::Counted count(const std::string& from) { return trespasses.count(ours, at(from), now); }
  bool shut(const std::string& from) { return trespasses.is_shut(at(from, 9999), now); }
};

TEST_F(TrespassesTest, the_third_try_shuts_the_door_for_a_minute) {
  EXPECT_FALSE(count("10.0.0.2").shuts);
  EXPECT_FALSE(count("10.0.0.2").shuts);
  EXPECT_FALSE(shut("10.0.0.2"));
  EXPECT_TRUE(count("10.0.0.2").shuts);
  EXPECT_TRUE(shut("10.0.0.2"));
  EXPECT_FALSE(shut("10.0.0.3")) << "another's door";
  now += minutes(1) - seconds(1);
  EXPECT_TRUE(shut("10.0.0.2"));
  now += seconds(1);
  EXPECT_FALSE(shut("10.0.0.2"));
  EXPECT_EQ(trespasses.total(), 3u);
}

TEST_F(TrespassesTest, tries_of_long_ago_are_forgotten) {
  count("10.0.0.2");
  count("10.0.0.2");
  now += minutes(11);
  EXPECT_FALSE(count("10.0.0.2").shuts);
  EXPECT_FALSE(shut("10.0.0.2"));
}

TEST_F(TrespassesTest, this_host_shuts_no_door) {
  struct Row {
    std::string remote, local;
  };
  for (const Row& row : {Row{"127.0.0.1", "127.0.0.1"}, Row{"127.0.0.9", "127.0.0.1"}, Row{"::1", "::1"},
                         Row{"10.0.0.1", "10.0.0.1"}, Row{"::ffff:10.0.0.1", "10.0.0.1"}}) {
    for (int i = 0; i < 10; ++i)
      EXPECT_FALSE(trespasses.count(at(row.local), at(row.remote), now).shuts) << row.remote;
    EXPECT_FALSE(shut(row.remote)) << row.remote;
  }
}

TEST_F(TrespassesTest, one_network_of_ipv6_is_one_source) {
  count("2001:db8:1:2::1");
  count("2001:db8:1:2:ffff::2");
  EXPECT_TRUE(count("2001:db8:1:2::3").shuts);
  EXPECT_TRUE(shut("2001:db8:1:2::4"));
  EXPECT_FALSE(shut("2001:db8:1:3::1"));
}

TEST_F(TrespassesTest, a_mapped_address_is_its_ipv4_address) {
  count("10.0.0.2");
  count("::ffff:10.0.0.2");
  EXPECT_TRUE(count("10.0.0.2").shuts);
}

TEST_F(TrespassesTest, news_come_once_a_minute_and_when_the_door_shuts) {
  EXPECT_TRUE(count("10.0.0.2").news);
  EXPECT_FALSE(count("10.0.0.2").news);
  EXPECT_TRUE(count("10.0.0.2").news) << "it shut the door";
  EXPECT_TRUE(count("127.0.0.1").news);
  EXPECT_FALSE(count("127.0.0.1").news);
  now += minutes(1);
  EXPECT_TRUE(count("127.0.0.1").news);
}

TEST_F(TrespassesTest, many_sources_cost_the_oldest_its_entry_only) {
  count("10.0.0.2");
  count("10.0.0.2");
  for (std::uint32_t i = 0; i < Trespasses::max_sources; ++i) {
    now += seconds(1) / 10;
    trespasses.count(ours, {asio::ip::address_v4(0x0b000000 + i), 1}, now);
  }
  EXPECT_FALSE(count("10.0.0.2").shuts) << "it was forgotten";
  count("10.0.0.2");
  EXPECT_TRUE(count("10.0.0.2").shuts) << "and is counted anew";
}

}  // namespace
}  // namespace weir::rdma
