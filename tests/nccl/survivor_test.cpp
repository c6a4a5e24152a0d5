// A rank whose peer is killed, or whose device fails, at any moment: each of its connections returns an error
// within a second, says why, and can be closed; the process continues.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>

#include "tests/nccl/scenarios.hpp"
#include "tests/piped_child.hpp"

namespace weir::nccl::testing_support {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds patience{1};

// NCCL_SUITE, NCCL_KILLS: the number of kills in every test run, and in the slow one.
struct NCCL_SUITE : ::testing::Test {
  std::unique_ptr<AnyNet> net;
  void SetUp() override {
    net = open_net(NCCL_PLUGIN, 12);
    ASSERT_EQ(net->init(keep_log()), Status::success) << kept_log();
  }
  void TearDown() override { EXPECT_EQ(net->finalize(), Status::success); }

  // Exchanges traffic with a child until both connections have ended; `strike(rounds)` says when to kill it.
  // Whatever has ended at the child must end here within `patience`.
  void survive(std::uint64_t seed, const std::function<bool(std::uint64_t)>& strike) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::PipedChild child({NCCL_PEER, NCCL_PLUGIN, "12", "traffic", std::to_string(seed)});
    Rank rank{
        *net, 0, {[&](const std::string& line) { child.say(line); }, [&] { return child.line(); }}, seed, {}};
    const Pair pair = connect_pair(rank);
    Clock::time_point killed{};
    const Ending ending = traffic(rank, pair, [&](std::uint64_t rounds) {
      if (killed != Clock::time_point{} || !strike(rounds)) return;
      child.kill();
      killed = Clock::now();
    });
    EXPECT_NE(ending.of_send, Status::success);
    EXPECT_NE(ending.of_receive, Status::success);
    const auto limit = patience + ending.without_a_turn;
    const auto expect_soon = [&](Clock::time_point noticed, Clock::time_point happened) {
      EXPECT_LT(noticed - happened, limit);
    };
    if (killed != Clock::time_point{}) expect_soon(std::max(ending.send_at, ending.receive_at), killed);
    child.kill();
    for (std::string line = child.line(); line.starts_with("send ") || line.starts_with("receive ");
         line = child.line()) {
      const Clock::time_point happened{Clock::duration(std::stoll(line.substr(line.find(' '))))};
      expect_soon(line.starts_with("send ") ? ending.receive_at : ending.send_at, happened);
    }
    EXPECT_EQ(net->close_send(pair.send), Status::success);
    EXPECT_EQ(net->close_receive(pair.receive), Status::success);
  }
};

TEST_F(NCCL_SUITE, hears_of_a_killed_peer) {
  constexpr std::uint64_t first_seed = 1;
  for (std::uint64_t seed = first_seed; seed < first_seed + NCCL_KILLS; ++seed) {
    std::mt19937_64 random(seed);
    const std::uint64_t when = 1 + random() % 4000;
    survive(seed, [when](std::uint64_t rounds) { return rounds >= when; });
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_NE(kept_log().find("ended: the peer"), std::string::npos) << kept_log();
}

// The peer's device fails under one connection; its process continues with the other.
TEST_F(NCCL_SUITE, hears_of_a_peer_whose_device_failed) {
  constexpr std::uint64_t first_seed = 1000;
  for (std::uint64_t seed = first_seed; seed < first_seed + NCCL_KILLS / 2; ++seed) {
    // Between 1 in 5 and 1 in 2,000 operations.
    const std::string faults = "qp-error=" + std::to_string(1.0 / (5 + seed * 7919 % 2000)) +
                               ",rnr-storm=0.01:300,seed=" + std::to_string(seed);
    ::setenv("WEIR_NCCL_FAULTS", faults.c_str(), 1);
    // A peer that is always idle causes no error; it is killed after a while.
    survive(seed, [](std::uint64_t rounds) { return rounds >= 10'000; });
    ::unsetenv("WEIR_NCCL_FAULTS");
    ASSERT_FALSE(HasFailure());
  }
}

TEST_F(NCCL_SUITE, a_device_that_died_makes_no_connection) {
  ::setenv("WEIR_NCCL_FAULTS", "dead-nic=0@10", 1);
  test::PipedChild child({NCCL_PEER, NCCL_PLUGIN, "12", "dead_device", "3"});
  Rank rank{
      *net, 0, {[&](const std::string& line) { child.say(line); }, [&] { return child.line(); }}, 3, {}};
  const Pair pair = connect_pair(rank);
  traffic(rank, pair, [](std::uint64_t) {});
  EXPECT_EQ(net->close_send(pair.send), Status::success);
  EXPECT_EQ(net->close_receive(pair.receive), Status::success);
  std::string line = child.line();
  while (line.starts_with("send ") || line.starts_with("receive ")) line = child.line();
  EXPECT_EQ(line, "ok");
  ::unsetenv("WEIR_NCCL_FAULTS");
}

}  // namespace
}  // namespace weir::nccl::testing_support
